// Command fuzz runs every fuzz target of the module, one after the other, and
// counts:
//
//	go run ./internal/figures/fuzz -n 10000000
//
// -n is the number of executions of each target, or a duration (30s). Figures are
// saved (see [figures.Variable]). It exits with 1 if any target fails; the input is
// then in testdata/fuzz of its package.
//
// It builds the test binaries itself, as go test -fuzz does, but measures the
// coverage only of the code that inputs pass through (see instrumented): go test
// measures all linked code, including SQLite, which costs most of the speed. The
// interesting inputs are kept where go test -fuzz keeps them.
//
// The fuzzer reports an execution of more than 10 s by the wall clock as one that
// hangs. On a machine so busy that a process waits that long for a processor, targets
// fail without a fault; the input then passes when it is run alone.
package main
