// Package sim simulates a world of workers that run the real engine over a
// simulated store, while everything goes wrong that can, in simulated time: a
// day takes a second or so. Only the world knows true time, and checks after
// every event that what package workerlease promises is true.
//
// Use it to test your own code against crashes, pauses, outages and wrong clocks
// that hardly ever happen on your desk:
//
//	for seed := range int64(50) { // One seed is one story.
//		r := sim.Run(t, sim.Options{
//			Seed: seed, Workers: 5, Length: 24 * time.Hour,
//			Callbacks: func(p *sim.Process) workerlease.Callbacks { return yours(p) },
//			Faults:    sim.Faults{Restarts: time.Hour, Stalls: time.Hour, Outages: 4 * time.Hour},
//		})
//		r.Check(t)
//	}
//
// The example of [Run] is a whole one, and [Random] draws faults of all kinds, on
// which Callbacks can be set; [Options.Task] is for code that uses workerlease.Run.
// Three rules:
//
//   - Wait by the context that LeaseAllocated got, or by [Process.Clock], and by
//     nothing else: then your code is paused, suspended and hurried as a process
//     would be. time.Sleep is true time: code that uses it works on through a
//     suspend, unnoticed. Channels and connections to the outside of the simulation
//     stop it for ever.
//   - Call [Process.Work] wherever you do what you need the lease for. The world
//     then checks that nobody else is at it, by true time. Without it, nothing is
//     checked of your code.
//   - Return when your context ends. A process that crashes can't be killed in a
//     simulation: its calls have no effect any more, its context ends, and
//     [Process.Dead] says so. What never returns ends the test, with its lease.
//
// A failure names its seed. The same options and seed make the same run, on any
// number of processors: each draw is a hash of the seed and of what is drawn for,
// and no two processes, of up to a thousand at once, wake at the same instant.
// Give the workers an InstanceID each, as names by default are not repeatable.
// [Options.Trace] tells the story.
//
// # What is simulated
//
// Each worker has a host with clocks of its own: they drift, start anywhere, and
// the time of day is wrong and stepped. Processes on it crash, are stopped in
// order and start again, stand still, and are suspended. Each call to the store
// travels there and back; it can be slow, refused, throttled, cut off by a
// partition, answered by a lie about its outcome, or not at all, and land
// minutes or hours later, up to the end of the run. The store has members whose
// clocks differ, one of which is in charge; it goes down, and reads can be stale.
// [Within] lists all of it.
//
// What the protocol can't bear, [Beyond] lists: a store whose time jumps by more
// than it admits, a host whose clocks all stand still, a write that was read and
// then rolled back, a clock that is off by percents. Holders may overlap then, and an
// overlap that nothing of it explains is a violation; [Overlap] says when one counts as
// reported. The world has a resource that remembers the highest fencing token, and checks
// that it accepts nothing stale.
//
// # What is checked
//
// Two holders never work at the same true time, unless they are of one group. A
// lease is worked under only in its window, less its margin, and only if its
// record was the first at its key. Tokens grow from term to term. Callbacks
// come in pairs and in order, once each, and a context ends before the window does: by
// up to half a second later where timers are late, and by 1.6 s after the process runs
// again, if it was paused or suspended. No release is sent before the code has
// returned, and no work follows it. In the ledger, no grant starts before the window
// of the record before it has ended, a release frees the term in the head and nothing
// else, other records change no term, and records are deleted only when a later one
// proves them old. An extension has the claim, the token and the holder of the term
// in the head, begins where that ends, and is never sent for a lease that has ended or
// was released. What is done is repeated by every record, no slot that is done is
// claimed again, and no slot more often than it may be; and each call of a task is
// checked against that again, unless intervals differ.
//
// And who gets a slot, when: wherever the world can tell that nothing has kept a
// process from it, by its calls, its timers, its stalls and its code. Nobody claims a
// slot before the turn of its priority, in steps as wide as its appends are slow and
// the time is uncertain. Where a higher priority had its turn, and the time to claim,
// no lower one has the slot: a priority is passed over only if its claim took longer.
// A process leaves the slot in which it starts to others, unless it may join it. By
// its boundary somebody has a slot, and after an outage within a lead, and a backoff,
// of its end; with FailoverWithin somebody takes over from a holder that has died. The
// members of a group work under what it has, those as well that start in the middle of
// a slot. Poison is superseded when it was watched for long enough. And a slot costs
// each worker one look at the time and one at the ledger, and an append if it finds
// the slot free; between the boundaries nobody calls the store, and no wait is so
// short that it spins. (Not where slots have parts, or work that is done once; and not
// for a process whose code has asked for [Process.Leasing], with which it may call the
// store itself.) [Result.Demands] counts how often each of these could be told. It
// can't be with a Schedule, hardly where intervals differ, and not in all of it with
// Job. Where it can't be, there is still what TestNoTwoHoldersWorkAtOnce
// checks, with one interval and up to the first poison: that no more than three slots
// and a minute pass, outages apart, that nobody has.
//
// That a leader goes on is tested in worlds with few faults, and so is all of the above,
// to the bounds that are promised:
// TestWithAHealthyStoreEachSlotIsTakenByItsBoundaryByTheHighestPriority,
// TestAfterAnOutageTheSlotIsTakenWithinOneLead, TestPoisonClearsWithinItsBound,
// TestOneFaultAtATimeKeepsTheSlots, TestAfterACrashAStandbyTakesOverWithinTheBound,
// TestAHigherPriorityThatReturnsTakesOverAtABoundary and
// TestWithNoFailbackTheHolderGoesOnForAsLongAsItLives. Work under what TryClaim gets is
// not checked by the world, but by TestCodeThatTriesToClaimOrAsksWhetherItHoldsIsExclusive.
//
// # The attacks
//
// What has broken systems of this kind, by number, and the tests that attack ours
// with it. Simulated means TestNoTwoHoldersWorkAtOnce of this package, with the
// faults in brackets, and with the same, but for groups,
// TestNoTwoHoldersWorkAtOnceWhereLeasesAreExtended; variants are engines that are broken
// on purpose, which it must catch (TestSimulationCatchesEveryBrokenVariant of package workerlease).
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
//	10 a lost race under another error      TestAppendErrorsByTheServersReply (MongoDB); TestAppendErrorsByTheReply (Cosmos DB)
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
//	18 a cached time                        simulated [old stamp]; TestStampsOfAServerThatOnlyHasTheDateHeader
//	19 poison, and honest oddities          simulated [poison, also above a free key, newer version, huge seq]; TestPoisonClearsWithinItsBound; TestPoisonAboveAFreeKeyStopsNobodyBeforeTheLedgerReachesIt; TestHonestRecordsThatLookOddAreObeyed
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
//	32 a top priority that crashes always   not built yet
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
