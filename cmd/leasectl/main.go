package main

import "github.com/slotlease/slotlease/cmd/leasectl/app"

func main() { app.Main() }
