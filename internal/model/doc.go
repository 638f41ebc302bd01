// Package model holds a model of the ledger protocol in Promela, and the test
// that has the model checker Spin search all of its states.
//
// The simulator and the properties of the engine try many runs of the real code.
// The model is the other way round: little, and not the code, but every run of it
// is tried, with every order of events and every pause, up to a number of ticks.
// It says what the code in workerlease/internal/machine does, in these files:
//
//	rules.pml   the rules of the protocol, one definition each
//	worker.pml  the worker: claims, reads back, works, stops, crashes
//	tenure.pml  the worker extends its tenure
//	job.pml     the worker's work is done once per slot
//	append.pml  how a worker makes records, and sends them
//	names.pml   what a worker remembers, and what is forgotten
//	ledger.pml  what there is, and how the ledger takes a record
//	model.pml   the network, store time, trimming, poison; the file to start with
//
// Each rule can be broken by a definition BREAK_name. The test searches
// configurations in which nothing is broken and no assertion may fail, and the same
// ones with one rule broken, in which a certain assertion must fail. So no rule is
// in the protocol for nothing, and no search is one that finds nothing anyhow.
//
// # What is asserted
//
//   - overlap: when work begins, nobody else is at work, but members of one's group.
//   - token_grows: it begins under a token above that of all work before (a group
//     shares one). So it never begins again under a tenure that was left.
//   - may_go: a record is deleted only if one above it was made, its head having been
//     read, at least the retention ago.
//   - no_gap: a grant leaves no gap behind a head that has not ended.
//   - frees_nobody: a release frees nothing that somebody works under.
//   - not_again: no grant that begins a tenure in a slot stands behind a record that
//     tells that the slot's work is done.
//   - few_enough: work begins in a slot no more often than there may be attempts.
//   - is_recorded: who takes its work for recorded as done is right.
//
// Nor may a run get stuck before its end. And a search in which nothing fails must
// have come to what it is about, such as a stale read, a release of a slot to come,
// or an append that landed on a trimmed key: otherwise it says nothing.
//
// # What stands for what
//
// T is store time in ticks; off[i] is the error of worker i's estimate of it, at most
// E, and constant. Slots have LEN ticks (for worker 1 twice as many, with MIXED). A
// run begins at the second slot and ends at the tick LAST; the ledger has KEYS keys.
//
// led[k] is the record at key k. w[i] is a worker: its stage, its claim, the windows
// that it has won (next) and works in (held), and its newest append (sent). A claim
// that was given up while its append was under way is given_up; the append itself
// is still in sent until another is made, or in zombie from then on. Messages land
// at any time, in any order, or never, also after their worker crashed.
//
// The process Worker does one step at a time, and any time may pass between two.
// Network lets appends land, Clock moves T on, Trimmer deletes what any worker's
// trimming may delete, Rogue writes one record of poison.
//
// The parts are switched on by definitions, since all at once can't be searched:
//
//	STALE     a read of the head may return any older record, or none
//	RELEASES  workers stop and release, and void claims are released
//	CRASHES   workers crash and start again
//	ZOMBIE    one more append of each worker stays under way beside a new one
//	MIXED     different intervals
//	EXTENDS   holders extend their tenures, over boundaries, too
//	WINDOW=n  a window has n ticks, and not a whole slot: when its holder is gone,
//	          another takes what is left of the slot
//	ONCE      slots have work that is done once, in ATTEMPTS at the most; extensions
//	          keep to their slots
//	GROUP     workers 0 and 1 are of one group
//	ROGUE     poison and resets
//	AHEAD=n   the ledger begins with a token that is n ticks ahead of its time
//	TRIM      trimming, with RETENTION and the claim's AGE
//	BATCHES   it stops anywhere
//	COPIES    of an append any number lands: workers and drivers retry
//	SPLIT     a claim is fixed in one step and the head read in another
//	EXTREMES  estimates are wrong by E, never by less
//
// # What is left out, and why that does no harm
//
//   - Margins, the millisecond that a timer needs, rungs, leads, backoff: they only
//     make workers do less. Here they may do everything at any time.
//   - The moment of the last safe check. Store time doesn't pass it while user code
//     is at work, as the context ends there. A process that is paused behind its last
//     check is outside of what the protocol can prevent, and of the model.
//   - Jumps of the store's clock and loss of samples: that estimates are right within
//     E is the assumption. The simulator has those.
//   - Replies. A worker looks at the key of its append instead, whenever it
//     likes: an acknowledgement, a conflict with somebody's record or with one's own
//     (drivers retry), and a read-back after a time-out all say what stands there. One
//     that comes when the record has been trimmed comes too late by the claim's age.
//   - An append that is in doubt and one that was refused are the same stage: the
//     look tells. Whoever finds the key empty sends the same record again.
//   - Time between reading the head and sending: that is the same as an append
//     which is long under way. Between fixing and reading, see SPLIT; to search it by
//     default would only make claims older.
//   - The time that poison is watched: resets may come at once.
//   - Work that ends early, unless it is for a release or done: if it overlaps nothing
//     when it lasts, it doesn't when it ends early.
//   - Claim ids of 128 bits: two claims never have the same. A worker's ids are named
//     by what they are to it, so that states which differ in names only are one; ids
//     that nobody asks for are 0, and so are records that nobody will read again.
//   - The number of records that are always kept, and who trims when: here all trim
//     all that they may, at once or later.
//   - What a worker does whose record is gone though nobody may have trimmed it: here
//     a record that is stored stays stored.
//   - Workers are alike, so their errors come in order.
//   - When a window is extended, and who may extend over a boundary: here all may at
//     any time while they work. Nor does a worker wait for its turn before it claims
//     what lies behind somebody else's window, if that leaves no gap.
//
// # What it can't say
//
//   - Whether anything comes to pass: that somebody takes over, or that work which
//     failed is tried again. A claim over the living (BREAK_GAP) breaks neither
//     exclusion nor the order of tokens nor is work done twice. It takes from a holder what
//     it was to have, which is an assertion of its own, no_gap.
//   - That a tenure which was left must not be worked under again, for the sake of
//     exclusion: without that rule nothing overlaps. But the user was told that its
//     lease is over, and work begins with its token again, so token_grows fails.
//   - A grant that stands before a done record may be begun to be worked under after
//     it. The order is that of records.
//   - Groups and extensions, or different intervals and work that is done once, are not
//     searched together; nor is a slot that is made up for in the next, or a release
//     by somebody who is not the holder.
//
// A stale read is a record that is still there. With trimming, a replica that is
// behind by as much as the retention breaks exclusion; a test shows it. That is why
// stores must read their newest record consistently, and the retention is two hours
// at least, and one day by default.
//
// Bounds: what takes more workers, ticks, keys or slots than a configuration has is
// not searched. Three workers are the most; one is one after another. Each search is
// complete within its bounds, with all states kept in full (no hashing that forgets).
// Most have some million states. Those of the long run have up to tens of millions, the
// most with three workers and trimming, in less than 5 GB of memory. Each run tells how
// many it searched.
//
// # Running it
//
// It needs spin (Debian: spin) and gcc; without them the test is skipped, or fails if
// REQUIRE_SPIN=1.
//
//	go test -v ./internal/model   # two minutes
//	make model                    # larger ones, too: some 20 minutes
//
// By hand, in an empty directory, and in the same way for any flags:
//
//	flags='-DRELEASES -DE=0 -DLEN=2 -DLAST=6 -DKEYS=4 -DBREAK_STOP_FIRST'
//	spin -a $flags .../model.pml
//	gcc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=8000 -o pan pan.c
//	./pan -m200000
//	spin -t -k model.pml.trail $flags .../model.pml | grep T=
//
// The last line tells a counterexample, one line for each event: who fixes, sends,
// works, what lands where. Kinds are 1 grant, 2 release, 3 reset, 6 done. Its warning about C
// code can be ignored: that code only notes what a search has come to. A smaller -m
// gives a shorter counterexample, if there is one. For every assignment, add -p -g.
package model
