//go:build linux

// Command chaos runs real leasectl processes over a real store, does to them
// what the world does to processes and networks, and judges by what their
// commands wrote.
//
// It is run in its own folder, go run . -store sqlite -duration 60s, and needs
// Linux. It builds leasectl from the tree, starts three workers for each of three
// worker types (slots of 1, 2 and 3 s), and strikes by a schedule that is drawn
// from -seed: the seed fixes what is tried and when, not what comes of it.
//
// # The faults
//
// SIGKILL to leasectl, its guard or its command; SIGSTOP for 0.1 to 20 s to each of
// them and to several at once; orderly stops; whole worker types at once. On
// MongoDB each worker has a proxy of its own (toxiproxy, in this process) which
// delays, swallows, resets or refuses, for one worker or all of them, and the
// server is killed and paused. On SQLite another process holds the write lock, or
// is killed in the midst of a transaction. Only processes are struck that descend
// from this one.
//
// # The verdict
//
// Each command, and the grandchildren that some of them detach, appends a line
// every few milliseconds to one log that all share. That log alone decides: a line
// with a token below one that was there before is an overlap, and so is one that
// is older in the file and later by the boot clock. It is a bug, and the exit code
// is 1, unless leasectl and the guard that should have ended the work were both
// stopped (or the one killed and the other stopped) by us just then: nobody was
// left to kill, which is where leasectl's promise ends. Then the fence must have
// held: each command also writes, with its token, to a resource that refuses stale
// ones (see fence.go), and the writes that were accepted must have tokens that
// never go down. The other findings that fail a run: windows that overlap or tokens
// that don't grow in the ledger, a command that was started twice with one token,
// work outside of its window (by more than 250 ms at its end: a guard that gets no
// processor kills late), a leasectl that ended by itself, or not in order once
// the faults were over, a process left behind, descriptors, goroutines or memory
// that only grow in a worker that was never killed, and a worker type that doesn't
// work again after the faults.
//
// Records are taken out of the ledgers, and kept for the verdict, a minute and a half
// after their windows (see archive.go): the test server for MongoDB needs short
// collections.
//
// A slot in which nobody worked, or not to its end, is explained from the faults,
// the ledger and the logs of leasectl; what can't be is listed one by one.
//
// However a run ends, nothing of it stays: the harness is the child of a second
// process of this program, to which everything falls that it leaves behind. A run
// that fails keeps its folder, with the log (work.log), the faults (faults.jsonl)
// and what each leasectl said, and names it together with the seed.
package main
