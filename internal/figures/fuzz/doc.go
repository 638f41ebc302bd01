// Command fuzz runs every fuzz target of the module, one after the other, and
// counts:
//
//	go run ./internal/figures/fuzz -n 10000000
//
// -n is how many executions of each target, or how long (30s). Figures are saved
// (see [figures.Variable]). It exits with 1 if any target fails; the input is then
// in testdata/fuzz of its package.
//
// It builds the test binaries itself, as go test -fuzz does, but measures the
// coverage of the code that inputs pass through only (see instrumented): go test
// measures all that is linked, SQLite among it, which costs most of the speed. The
// inputs that it finds interesting are kept where go test -fuzz keeps them.
//
// The fuzzer takes an execution of more than 10 s by the wall clock for one that
// hangs: where the machine is so busy that a process waits that long for its turn,
// targets fail that have no fault. The input passes then, when it is run alone.
package main
