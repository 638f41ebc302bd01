//go:build linux

// Command chaos runs real leasectl processes over a real store, exposes them to the
// faults of processes and networks, and judges the outcome by the lines that their
// commands wrote.
//
// It runs in its own folder, needs Linux, and builds leasectl from the tree. Everything
// random is drawn from -seed: that fixes the faults and their times, not the outcome.
// It has six scenarios, on SQLite or on a server: MongoDB's, PostgreSQL, MariaDB, Redis, S3's, Azurite, the emulator
// of Cosmos DB, etcd or an API server of Kubernetes, which testutil's peers start (-store mongo, postgres, mysql, redis,
// s3, azblob, cosmos, etcd, kubernetes):
//
//	go run . -store sqlite -duration 60s                     faults of all sorts
//	go run . -scenario takeover -store sqlite -tries 100     holders that die
//	go run . -scenario rolling -store sqlite -tries 20       deployments over a boundary
//	go run . -scenario done -store sqlite -tries 200         jobs that are done once for each slot
//	go run . -scenario overrun -store sqlite -tries 40       jobs that take longer than their slots
//	go run . -scenario escapes -store sqlite -tries 200      commands whose processes try to escape
//
// # The verdict
//
// Commands append a line every few milliseconds to a log. In every scenario the exit
// code is 1 if
//
//   - two commands worked at once: a line has a lower token than a line before it in
//     the file, or is older in the file and later by the boot clock;
//   - a command worked outside of its window (250 ms late at most: a guard that gets no
//     processor kills late), or tokens did not grow;
//   - windows overlap in the ledger, or it breaks another rule (see workerlease/verify);
//   - a leasectl ended by itself, or not in order, panicked, or left a process.
//
// # Faults of all sorts
//
// The chaos scenario starts three workers for each of three worker types (slots of 1,
// 2 and 3 s), and strikes them by a schedule: SIGKILL to leasectl, its guard or its
// command; SIGSTOP for 0.1 to 20 s to each of them and to several at once; orderly
// stops; whole worker types at once. On a server each worker has its own proxy
// (toxiproxy, in this process) which delays, swallows, resets or refuses, for one
// worker or all of them, and the server is killed and paused. On S3, Azurite, the
// emulator of Cosmos DB, etcd and Kubernetes, whose clocks show whole seconds, slots are ten times as long, and there is no other scenario. The etcd server below
// that of Kubernetes isn't struck. On SQLite another process
// holds the write lock, or is killed in the middle of a transaction. Only descendants
// of this process are struck.
//
// An overlap is excused only while leasectl and the guard that should have ended the
// work were both stopped (or the one killed and the other stopped): no process was left
// to end it, which is the limit of leasectl's promise. Then the fence must have held:
// each command also writes, with its token, to a SQLite file that refuses stale tokens
// (see fence.go), and the tokens of the accepted writes must never go down.
//
// The run also fails if descriptors, goroutines or memory only grow in a worker that is
// never killed, if a worker type doesn't work again after the faults, and if it shows
// too little: no fault struck, or work in less than half of the slots. Slots without
// work are explained from the faults, the ledger and the logs of leasectl; unexplained
// ones are listed, and too many of them fail the run (see judgeExtent).
//
// # Takeovers
//
// Each try has its own worker type, with slots of 10 s and --failover-within 2s, a
// holder, and a standby of the next priority. At a random moment of a slot the holder's
// leasectl is killed, or in every other try sent SIGTERM. The command of the standby
// must write its first line within a bound (see bound). A try over the bound by no more
// than the time for which the harness itself got no processor is made again.
//
// # Rolling deployments
//
// Each try has its own worker type, with slots of 20 s, and two to five workers. They are
// ended by SIGTERM and started again, in any order and with random gaps, at a random time
// before a boundary. Half of the types are jobs, --once-per-slot, whose workers don't wait for
// one another, so that at times none is there: the slot that begins meanwhile must be done,
// once, and be begun within --start-within. The others are leaders, --continuous and
// --no-failback, whose next worker is ended when the one before is ready again: nobody may
// lead for --failover-within and a second at most (see rollingLimit), from the moment at which all
// are ready for the first time.
//
// # Once for each slot
//
// Six worker types, --once-per-slot --max-attempts 5, have commands that take a random
// time, and fail now and then. In each slot one leasectl is killed at a random moment,
// and half of those whose command ends, around that moment: its outcome is on its way
// to the ledger then. The harness marks each done record in the log of the commands. No
// command may begin after the mark of its slot (unless its lease was granted before the
// record), no grant of a slot follow its done record, no slot be begun or granted more
// often than allowed, and none be recorded as done without a command that ended well.
// Nine of ten slots must be done, of those in which the harness itself got the
// processor.
//
// # Runs longer than their slots
//
// Six worker types, --once-per-slot and slots of 8 s, have commands that take 1.3 or 5 slots. Each must
// end well, and each slot that begins meanwhile must be shown as skipped by leasectl inspect
// slots, and have no command.
//
// # An older version
//
// With -older PATH, the workers that a rolling deployment replaces are another leasectl, and so is one
// worker of each type in the scenarios done and overrun; in that one only for four slots, then it is replaced. All rules
// hold as ever, but that the older one's runs end with their slots. make older builds one of the history, and runs the three.
//
// # Escapes
//
// Each try has its own worker type, with slots of 3 s, and a command whose processes try
// to outlive it, in three of nine ways (testdata/escapes.c, which needs gcc): detached,
// without a main thread, deaf to signals, many that replace each other, a chain of short
// lives, and others. It is ended in five ways: the lease ends, leasectl gets SIGTERM, or
// leasectl, its guard or the command SIGKILL. As root, one third of the tries has no
// cgroups, and in another leasectl runs as nobody, and /proc hides processes: mounts of
// namespaces that only its own processes have. REQUIRE_ESCAPES=1 fails where these can't
// be made.
//
// Every process writes lines for as long as it lives, and they alone are the judge. None
// may be later than the window (unless the harness itself got no processor for as long),
// and none later than the release of the lease, without excuse. TestABrokenGuardIsCaught
// builds leasectl with a guard that lets processes go, and must see that.
//
// # How it ends
//
// However a run ends, it leaves no process: the harness is the child of a second
// process of this program, which adopts and kills its orphans. A run that fails keeps
// its folder, with the logs of the commands (*.work.log) and of each leasectl (*.N.log)
// and the faults (faults.log), and prints its path and the seed.
package main
