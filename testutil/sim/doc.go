// Package sim simulates workers that run the real engine over a simulated store, while
// every fault that can happen does. Time is simulated, so a day takes about a second. Only
// the simulated world knows true time. After every event it checks the promises of package
// workerlease.
//
// Use it to test your own code against crashes, pauses, outages and wrong clocks, which
// hardly ever happen on a developer's machine:
//
//	for seed := range int64(50) { // Each seed is a different run.
//		r := sim.Run(t, sim.Options{
//			Seed: seed, Workers: 5, Length: 24 * time.Hour,
//			Callbacks: func(p *sim.Process) workerlease.Callbacks { return yours(p) },
//			Faults:    sim.Faults{Restarts: time.Hour, Stalls: time.Hour, Outages: 4 * time.Hour},
//		})
//		r.Check(t)
//	}
//
// The example of [Run] is complete. [Random] draws faults of all kinds; set Callbacks on
// its result. [Options.Task] is for code that uses workerlease.Run. Your code must follow
// three rules:
//
//   - Wait only by the context that LeaseAllocated got, or by [Process.Clock]. Then your
//     code is paused, suspended and delayed as a real process would be. time.Sleep is true
//     time: code that uses it works on through a suspend. Code that waits for a channel or
//     a connection from outside the simulation stops it for ever.
//   - Call [Process.Work] wherever you do the work that needs the lease. The world then
//     checks, by true time, that no other worker is at work. Without that call it checks
//     nothing of your code.
//   - Return when your context ends. A simulation can't kill a process that crashes: its
//     calls have no effect any more, its context ends, and [Process.Dead] reports it. Code
//     that never returns ends the test with a panic that names its lease.
//
// A failure names its seed. The same options and seed make the same run on any number of
// processors: each draw is a hash of the seed and its purpose, and no two of up to a
// thousand processes wake at the same instant. Give each worker an InstanceID, because
// default names differ from run to run. [Options.Trace] records each call, callback and
// event.
//
// # What is simulated
//
// Each worker has a host with its own clocks. They drift and start anywhere, and the time of
// day is wrong and is stepped. Processes on the host crash, are stopped in order and start
// again, are paused, and are suspended. Each call to the store travels there and back. It
// can be slow, refused, throttled or cut off by a partition. Its outcome can be misreported
// or never reported, and an append can land minutes or hours later, up to the end of the
// run. The store has members with different clocks, one of which is in charge. It has
// outages, and reads can be stale. [Within] lists all of these faults.
//
// [Beyond] lists the faults that the protocol doesn't tolerate: the store's time jumps by
// more than it admits, all clocks of a host stand still, a write is rolled back after it was
// read, a clock is off by percents. Holders may then overlap. An overlap that no such fault
// explains is a violation; [Overlap] defines when one counts as reported. The world also has
// a resource that remembers the highest fencing token, and checks that it accepts no stale
// write.
//
// # What is checked
//
// Exclusion: two holders never work at the same true time, unless they are of one group. Work
// happens only in the window of its lease, less the margin, and only if the lease's record
// was the first at its key. Tokens grow from term to term.
//
// Callbacks: they come in pairs, in order, once each. A context ends before its window does:
// up to half a second later where timers are late, and up to 1.6 s after the process runs
// again if it was paused or suspended. No release is sent before the code has returned, and
// no work follows it.
//
// The ledger: no grant starts before the window of the record before it ends. A release frees
// the term in the head and nothing else; other records change no term. A record is deleted
// only if a later one proves that it is old. An extension has the claim, token and holder of
// the term in the head, begins where that term ends, and is never sent for a lease that has
// ended or was released. Every record repeats which slots are done. A done slot is never
// claimed again, and no slot is claimed more often than MaxAttempts. Each call of a task is
// checked against that, unless intervals differ. Each slot that is recorded as done has an outcome by
// the worker that did it, and no worker tells an outcome twice.
//
// Liveness: the world knows from a process's calls, timers, stalls and code whether anything
// has kept it from a slot. Where nothing has, the world demands:
//
//   - No worker claims a slot before the turn of its priority, except by as much as its claim
//     takes to land. Steps between turns are as wide as the time is uncertain and as appends
//     differ in length.
//   - A lower priority gets a slot only if the claim of a higher one took too long.
//   - A process leaves the slot in which it starts to others, unless it may join it.
//   - Some worker has each slot by its boundary, and within a lead and a backoff after an
//     outage. With FailoverWithin a worker takes over from a dead holder.
//   - The members of a group work under the group's lease, also those that start in the
//     middle of a slot.
//   - Poison is superseded once it was watched for long enough.
//   - A worker that has read an order to go at once tells its code to stop as soon as it has, and
//     adds no window to its lease after one: so it stops by the end of the window that it had when the order was given.
//     No lease ends by an order that isn't about it, or that its worker hasn't read.
//     The rest of its slot is released once its code has returned, unless claims for the next slot are open by then.
//   - A worker that has just heard that another one is preferred claims after all turns.
//   - When an order ends by which nobody claims, some worker has what is left of the slot within FailoverWithin.
//   - A slot costs each worker one read of the time and one of the ledger, and an append if
//     it finds the slot free. Between boundaries no worker calls the store, and no wait is so
//     short that it spins. This is not checked where slots have parts or jobs, or for a
//     process whose code has called [Process.Leasing], with which it may call the store.
//   - Whatever the store answers, a worker reads at most twice a second, on average over a minute:
//     more often only if slots are shorter than two seconds, if FailoverWithin makes parts that
//     have to be extended, or if the end of a Job has to be recorded.
//
// [Result.Demands] counts how often each demand applied. None applies with a Schedule, few
// where intervals differ, and not all of them with a Job. There, TestNoTwoHoldersWorkAtOnce
// still checks, for one interval and up to the first poison, that outside of outages no
// lease goes unheld for longer than three slots plus a minute.
//
// TestNoTwoHoldersInAnyRegime draws worlds that [Random] leaves out: wrong stamps, members that
// answer in turn, members whose clocks are apart, one machine whose clock is the store's, wrong clocks, elections, cron schedules while clocks change, mixed options,
// sixty workers, slots of a tenth of a second, clients of twenty types, workers that are ill, a roster that lies, processes
// that crash in each lease, and work that fails under leases that are kept. Each has a demand of
// its own on who leads again, and by when. TestEachRegimeNoticesWhatIsSpoiled shows that each can
// fail.
//
// The following tests check liveness to its promised bounds, in worlds with few faults:
// TestWithAHealthyStoreEachSlotIsTakenByItsBoundaryByTheHighestPriority,
// TestAfterAnOutageTheSlotIsTakenWithinOneLead, TestPoisonClearsWithinItsBound,
// TestOneFaultAtATimeKeepsTheSlots, TestAfterACrashAStandbyTakesOverWithinTheBound,
// TestAHigherPriorityThatReturnsTakesOverAtABoundary and
// TestWithNoFailbackTheHolderGoesOnForAsLongAsItLives. The world doesn't check work under
// leases from TryClaim; TestCodeThatTriesToClaimOrAsksWhetherItHoldsIsExclusive does.
//
// # The attacks
//
// This list numbers the faults that have broken systems of this kind, and names the tests
// that attack ours with them. "Simulated" means TestNoTwoHoldersWorkAtOnce of this package
// with the faults in brackets, and TestNoTwoHoldersWorkAtOnceWhereLeasesAreExtended with the
// same, except for groups. "Variants" are engines that are broken on purpose, which the
// simulation must catch (TestSimulationCatchesEveryBrokenVariant of package workerlease).
//
// Store:
//
//	 1 an append times out, then commits   simulated [reply lost, append landed late]; TestAnAppendWhoseReplyGoesAstrayIsFoundAndHasOneHolder
//	 2 a conflict against one's own insert  simulated [conflict against own]; variants of reading back
//	 3 a pause while the key is trimmed     simulated [landed on a trimmed key]; variants of trimming; internal/model
//	 4 an idle type starts again            storetest "trim"; TestOldRecordsAreTrimmedAfterTheRetentionAndTheHeadNever
//	 5 rollback, dirty read                 TestConcernsAreOursWhateverTheURIOrTheClientSays; TestBeyondTheAssumptionsOverlapsAreReportedAndFenced
//	 6 a stale read                         simulated [stale read]; internal/model
//	 7 multi-region writes                  TestAccountsThatAreRefused; TestAccountIsLookedAtEveryTenMinutes
//	 8 another shard key                    TestUnfitCollectionsAreRefused
//	 9 no init, no index, a restored dump   storetest "lifecycle"; TestInitCreatesOnlyWhatIsMissing; TestWorkersOutliveARestartOfTheServerAndTokensALossOfItsData
//	10 a lost race under another error      TestAppendErrorsByTheServersReply (MongoDB); TestErrorsByTheReply (Cosmos DB)
//	11 throttling                           simulated [throttled]; TestAStoreThatThrottlesGetsTheTimeItAsksFor; TestThrottledAppendWaitsAsLongAsItIsTold
//	12 an election                          simulated [failover]; TestOneFaultAtATimeKeepsTheSlots
//	13 any error at any moment              TestNoSingleFaultEndsLeasingOrCostsASlot
//
// Time and process:
//
//	14 a wrong or stepped time of day       simulated [wall clock step]; TestAProcessWhoseTimeOfDayIsWrongLeadsInTheRightSlots (inspect clock: not built yet)
//	15 suspend and SIGSTOP                  simulated [pause, suspend]; TestALeaseIsOverWithinASecondOfWakingFromASuspend; internal/chaos
//	16 a failover to another clock          simulated [failover]; TestBeyondTheAssumptionsOverlapsAreReportedAndFenced
//	17 a server clock that steps            simulated [server clock step]; TestAJumpOfTheStoresClockEndsTheLeaseAndLeasingGoesOn
//	18 a cached time                        simulated [old stamp]; TestServerThatDoesNotKnowTheTimeFunctionIsAskedOnce
//	19 poison, and honest oddities          simulated [poison, also above a free key, newer version, valid record of no worker, huge seq]; TestAForeignRecordMakesNoTwoWorkAndStopsNobodyForGood; TestPoisonClearsWithinItsBound; TestPoisonAboveAFreeKeyStopsNobodyBeforeTheLedgerReachesIt; TestHonestRecordsThatLookOddAreObeyed
//	20 different intervals                  simulated [lease of another interval]; TestWorkersWithDifferentIntervalsStayExclusiveAndSaySoOnce
//	21 changes of local time                TestPropertyCronSlotsPartitionTimeInAllZones (samples of zones and times); TestCronWhenTheClocksChange
//	22 intervals that divide no day         TestEveryCutsOneGridForAllObservers
//	23 timers that are late or early        simulated [timer late or early]; variants of looking again
//	24 a callback that comes late           simulated [observer blocked]; variants of looking again
//	25 a callback that blocks or panics     simulated [callback past its end, callback panicked]; TestCodeThatOverrunsKeepsTheWorkerFromClaiming
//	26 a release while work runs            simulated [orderly stop]; variants of releasing; TestStopLeasingReleasesAfterTheCodeHasReturned
//	27 one instance id twice                simulated [instance id used twice]; TestTwoWorkersWithOneNameAreStillTwo
//	28 claimed, then crashed                simulated [crash]; TestALowerPriorityTakesTheNextSlotWhenTheHigherDies; TestAfterACrashAStandbyTakesOverWithinTheBound
//	29 a stranger's term freed or stolen  variants of releasing, extending and of what is done; internal/model
//	30 an append that hangs for a day       simulated [append landed late, landed on a trimmed key]; variants of the age of claims and of trimming
//
// Crowd:
//
//	31 a thousand workers at a boundary     TestAThousandWorkersAtOneBoundaryMakeOneAppendAndOneReadEach
//	32 a top priority that crashes always   simulated [crash in the lease]; TestACrashLoopLeavesTheSlotsToOthers, TestWhoAlwaysFailsLeavesTheSlotsToOthers
//	33 equal priorities                     TestAmongEqualsStickyKeepsAndRotateRotates; TestRotateIsFairAmongEqualWorkers
//	34 inversions                           simulated; variants of the order of claims; TestOnlyASlowClaimLosesToALowerPriority
//
// Input and secrets:
//
//	35 odd worker types                     TestEveryBadOptionIsNamedWithItsValueAndTheRule; FuzzWorkerType (types that differ by case: not built yet)
//	36 operators as names                   storetest "hostile names"
//	37 hostile documents                    storetest "planted documents"; FuzzDecode of each store
//	38 secrets in output                    TestNoOutputEverShowsAPassword; FuzzURINeverPanicsNorLeaks
//	39 destructive commands                 not built yet
//	40 TLS                                  TestURIsThatAreRefused (Cosmos DB; MongoDB is not built yet: the URI decides)
package sim
