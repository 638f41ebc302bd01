package storetest

// Unhurried leaves facts alone to be judged: nothing is measured.
func Unhurried() { overtime, leaving = patience, patience }
