package machine

// This file has the sets that some of the Rules are: what is not in one is left out.

// Acts are acts of a worker.
type Acts int

// The acts that Rules.Await and Rules.Heeds are about.
const (
	// Beginning: starting the user's code. It runs once at a time.
	Beginning Acts = 1 << iota
	// Claiming: taking another slot, which might pass unused.
	Claiming
	// Releasing: giving the rest of a term to others, which begin at once.
	Releasing
	// Holding: going on with a lease. Rules.Await is not about it, nor about the next.
	Holding
	// Stalling: going on with a lease whose code shows no progress.
	Stalling
)

// Looks are occasions to check the time.
type Looks int

// The occasions that Rules.Looks is about. All of them are used: between two of them any
// process may have stood still, with its timers.
const (
	// AtStart: right before LeaseAllocated.
	AtStart Looks = 1 << iota
	// AtTimer: once a second while a lease is held, where the clock has boot time,
	// because timers stand still in a suspend.
	AtTimer
	// AtQuestion: when user code asks whether its lease is valid.
	AtQuestion
	// AtRetry: at the head, right before work begins that was tried before. It may have been
	// recorded as done since the grant. Breaking it shows as work that is done twice.
	AtRetry
)

// Samples are occasions to sample the time before anything else.
type Samples int

// The occasions that Rules.Samples is about.
const (
	// IfSingle: what is known comes from one answer, which may be wrong.
	IfSingle Samples = 1 << iota
	// IfIdle: the client has had no worker for a while, and a new one is to aim.
	IfIdle
	// IfWide: what is known is so uncertain that a slot is lost, or begins late.
	IfWide
	// IfApart: samples contradict one another by a good part of a slot.
	IfApart
	// IfAhead: what the worker has won last lies far ahead, so that a clock that is gone, or this one,
	// was wrong.
	IfAhead
)

// Doings are what a worker is about.
type Doings int

// What Rules.InDoubt is about.
const (
	// Contending for a slot in which nothing can be claimed, only because the time isn't known well.
	Contending Doings = 1 << iota
	// Recording that work is done. Other workers wait for that for so long only.
	Recording
)

// Unused is what a worker has won and doesn't use.
type Unused int

// What Rules.GivesBack is about.
const (
	// AfterJump: the rest of a term that a jump of the clock has ended.
	AfterJump Unused = 1 << iota
	// WhileOverrun: the next slot, while the code of the one before it runs on.
	WhileOverrun
	// AfterStepDown: the rest of a term that its worker has ended because it is not fit.
	AfterStepDown
)
