//go:build linux

// Command chaos runs real leasectl processes over a real store, does to them
// what the world does to processes and networks, and judges by what their
// commands wrote.
//
// It is run in its own folder, needs Linux, and builds leasectl from the tree. What is
// random is drawn from -seed: that fixes what is tried and when, not what comes of it.
// It plays one of four scenarios, on SQLite or on MongoDB:
//
//	go run . -store sqlite -duration 60s                     faults of all sorts
//	go run . -scenario takeover -store sqlite -tries 100     holders that die
//	go run . -scenario rolling -store sqlite -tries 20       all workers started anew, in turn
//	go run . -scenario done -store sqlite -tries 200         jobs that are done once for each slot
//
// # The faults
//
// The first scenario starts three workers for each of three worker types (slots of 1,
// 2 and 3 s), and strikes them by a schedule.
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
// work again after the faults. So does a run that shows too little: in which no fault
// struck, or nobody worked in half of the slots.
//
// Records are taken out of the ledgers, and kept for the verdict, a minute and a half
// after their windows (see archive.go): the test server for MongoDB needs short
// collections.
//
// A slot in which nobody worked, or not to its end, is explained from the faults,
// the ledger and the logs of leasectl; what can't be is listed one by one, and fails
// the run if it is more than a busy machine may do (see judgeExtent).
//
// # Takeovers
//
// Each try has a worker type of its own, with slots of 10 s and --failover-within 2s,
// a holder, and a standby of the next priority. At a random moment of a slot the
// holder's leasectl is killed, or in every other try told to end. The command of the
// standby must write its first line within a bound: 2 s, the turn of its priority,
// the uncertainty of store time, and what two requests and the start of a command
// take, as measured in the same run where nothing was disturbed; a lead more towards
// the end of a slot (see bound in takeover_judge.go). Where the harness itself got no
// processor for as long as a try was over the bound, the try is made again.
//
// # Rolling restarts
//
// Three workers of one type, --continuous and --failover-within 1500ms, are ended by
// SIGTERM and started again, one after the other, each when the one before is ready
// and somebody works. In every slot somebody must have worked, and never may nobody have
// for longer than a bound (see rollingLimit). Printed are the shares of the slots, and
// the longest time in which nobody did.
//
// # Once for each slot
//
// Six worker types, --once-per-slot --max-attempts 5, have commands that take a random
// time, and fail now and then. Their leasectl are killed, each slot one at a random
// moment, and half of those whose command ends around that: there its outcome is on
// its way to the ledger. The harness looks for done records in the ledger all the time,
// and marks them in the log of the commands. No command may begin behind the mark of
// its slot (unless its lease was granted before the record, which came late then), no
// grant of a slot come behind its done record, no slot be begun or granted more often
// than allowed, and none be told to be done that no command did.
// Nine of ten slots must be done, of those in which the harness itself got the
// processor.
//
// In these three, the ledger and the order of the commands are checked as well: never
// two at once, not outside of their windows, tokens that only grow.
//
// # How it ends
//
// However a run ends, nothing of it stays: the harness is the child of a second
// process of this program, to which everything falls that it leaves behind. A run
// that fails keeps its folder, with the log (work.log), the faults (faults.jsonl)
// and what each leasectl said, and names it together with the seed.
package main
