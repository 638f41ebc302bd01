package main

import (
	"context"
	"os"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
)

func main() {
	guard.Main()
	os.Exit(execute(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
