// Package model holds a model of the ledger protocol in Promela, and the test
// that has the model checker Spin search all of its states.
//
// The simulator and the property tests try many runs of the real code. The model is
// small and is not the code, but the search covers every run of it: every order of
// events and every pause, up to a number of ticks. It describes what the code in
// workerlease/internal/machine does, in these files:
//
//	rules.pml   the rules of the protocol, one definition each
//	worker.pml  the worker: claims, reads back, works, stops, crashes
//	term.pml    the worker extends its term
//	job.pml     the worker's work is done once per slot
//	append.pml  how a worker makes records, and sends them
//	names.pml   what a worker remembers and forgets
//	ledger.pml  the data, and how the ledger takes a record
//	model.pml   the network, store time, trimming, poison; the file to start with
//
// Each rule can be broken by a definition BREAK_name. The test searches
// configurations in which nothing is broken and no assertion may fail, and the same
// ones with one rule broken, in which a given assertion must fail. So every rule is
// needed, and every search can find a fault.
//
// # What is asserted
//
//   - overlap: when work begins, no worker outside its group is at work.
//   - token_grows: work begins under a higher token than all work before (a group
//     shares one). So work never resumes under a term that was left.
//   - may_go: a record is deleted only if a record above it was made, from a head
//     read at least the retention ago.
//   - no_gap: a grant leaves no gap after a head that has not ended.
//   - frees_nobody: a release frees nothing that a worker works under.
//   - not_again: once a record says that a slot's work is done, no later grant begins
//     a term in that slot.
//   - few_enough: work begins in a slot at most as often as attempts are allowed.
//   - is_recorded: a worker that believes its work is recorded as done is right.
//
// A run must not get stuck before its end. A search in which nothing fails must also
// have reached its subject, such as a stale read, a release of a future slot, or an
// append that landed on a trimmed key; otherwise it proves nothing.
//
// # Variables
//
// T is store time in ticks; off[i] is the error of worker i's estimate of it, at most
// E, and constant. Slots have LEN ticks (for worker 1 twice as many, with MIXED). A
// run begins at the second slot and ends with the tick before LAST: no process ends, or its
// end would come in every order with those of all others, in each of the last states. The
// ledger has KEYS keys.
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
//	EXTENDS   holders extend their terms, over boundaries, too
//	WINDOW=n  a window has n ticks, and not a whole slot: when its holder is gone,
//	          another takes what is left of the slot
//	ONCE      slots have work that is done once, in ATTEMPTS at the most; extensions
//	          keep to their slots
//	GROUP     workers 0 and 1 are of one group
//	ROGUE     poison and resets
//	VALID     the poison may be valid alone, and contradict what is below it: a grant, or
//	          a reset that was stored before, as of a restored backup
//	WRONG=n   up to n stamps are wrong, by WRONG_BY ticks, and fewer in a row than decide
//	          (VOTES); while samples contradict one another, nothing goes on
//	JUMP=n    the store's clock jumps once, by n ticks, and each worker learns of it later:
//	          then it acts by both clocks, until that is settled
//	LATE_NEWS a worker may learn what came of an append before it learns of the jump, if the
//	          append has landed before anybody has settled that
//	ANY_NEWS  the same, whenever the append lands
//	AHEAD=n   the ledger begins with a token that is n ticks ahead of its time
//	TRIM      trimming, with RETENTION and the claim's AGE
//	BATCHES   it stops anywhere
//	COPIES    of an append any number lands: workers and drivers retry
//	SPLIT     a claim is fixed in one step and the head read in another
//	EXTREMES  estimates are wrong by E, never by less
//
// # What is left out, and why that is safe
//
//   - Margins, the millisecond that a timer needs, turns, leads, backoff: they only
//     make workers do less. Here they may do everything at any time.
//   - The moment of the last safe check. Store time doesn't pass it while user code
//     is at work, as the context ends there. A process that is paused after its last
//     check is beyond what the protocol can prevent, and outside the model.
//   - Loss of samples: that estimates are right within E is the assumption, but for wrong
//     stamps, and for one jump of the store's clock. The simulator has those. A worker that
//     doesn't know of a jump yet may begin what it has won, and works on; it claims nothing,
//     since it samples the time before. An append that it has under way lands before
//     others have settled the jump, or comes to nothing. If one lands later, two may work
//     at once, as ANY_NEWS shows. So a jump is beyond the assumptions, and this is how far
//     it is borne. By which clock a grant leaves a gap is not asserted after a jump.
//   - Replies. A worker looks at the key of its append instead, whenever it
//     likes: an acknowledgement, a conflict with somebody's record or with one's own
//     (drivers retry), and a read-back after a time-out all report what is there. A reply
//     that arrives after the record was trimmed is too late by the claim's age.
//   - An append of unknown outcome and one that was refused are the same stage: the
//     look decides. A worker that finds the key empty sends the same record again.
//   - Time between reading the head and sending: the same as an append that is in
//     flight for longer. Between fixing and reading, see SPLIT; searching it by
//     default would only make claims older.
//   - The time for which poison is watched: resets may come at once.
//   - Work that ends early, except for a release or when done: work that overlaps
//     nothing while it lasts overlaps nothing when it ends early.
//   - 128-bit claim ids: two claims never share one. A worker's ids are named by their
//     role, so that states that differ only in names are one; ids that are never
//     compared are 0, and so are records that are never read again.
//   - The number of records that are always kept, and which worker trims when: here
//     every worker trims all that it may, at once or later.
//   - A worker whose record is gone although it could not have been trimmed: here a
//     stored record stays stored.
//   - Workers are alike, so their clock errors come in order.
//   - When a window is extended, and which worker may extend over a boundary: here
//     every worker may, at any time while it works. Nor does a worker wait for its turn
//     before it claims the time after another's window, if that leaves no gap.
//
// # What the model can't show
//
//   - Progress: that a standby takes over, or that failed work is tried again. A claim
//     over an active lease (BREAK_GAP) breaks neither exclusion nor the order of
//     tokens, and no work is done twice. It takes time from a holder, which a separate
//     assertion, no_gap, forbids.
//   - That nothing may be begun while samples contradict one another: by an interval that
//     contains both times nothing overlaps. It is caution.
//   - That exclusion needs the rule against working again under a term that was left:
//     without it nothing overlaps. But the user has been told that the lease is over,
//     and work would begin with its token again, so token_grows fails.
//   - Work may begin after a done record under a grant from before it. The order is
//     that of the records.
//   - Groups with extensions, and different intervals with work that is done once, are
//     not searched together; nor is a slot made up for in the next, or a release by a
//     worker that is not the holder.
//
// A stale read returns a record that still exists. With trimming, a replica that lags
// by the retention breaks exclusion; a test shows it. That is why stores must read
// their newest record consistently, and why the retention is at least two hours, and
// one day by default.
//
// Bounds: nothing that needs more workers, ticks, keys or slots than a configuration
// has is searched. Each search is complete within its bounds, with all states kept in
// full (no lossy hashing). Most have some ten thousand states. The long run has up to 4
// million, in less than 1 GB of memory. Each run reports its number of states.
//
// # Running it
//
// It needs spin (Debian: spin) and gcc; without them the test is skipped, or fails if
// REQUIRE_SPIN=1.
//
//	SLOTLEASE_MODEL=quick go test -v ./internal/model   # a minute
//	make model                                          # the larger ones: some minutes
//
// By hand, in an empty directory, and in the same way for any flags:
//
//	flags='-DRELEASES -DE=0 -DLEN=2 -DLAST=6 -DKEYS=4 -DBREAK_STOP_FIRST'
//	spin -a $flags .../model.pml
//	gcc -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=8000 -o pan pan.c
//	./pan -m200000
//	spin -t -k model.pml.trail $flags .../model.pml | grep T=
//
// The last line prints a counterexample, one line for each event: which worker fixes,
// sends or works, and what lands where. Kinds are 1 grant, 2 release, 3 reset, 6 done.
// Ignore its warning about C code, which only notes the points that a search reached.
// A smaller -m gives a shorter counterexample, if there is one. For every assignment,
// add -p -g.
package model
