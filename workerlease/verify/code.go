package verify

import "github.com/slotlease/slotlease/internal/ledger"

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	// Fault: a rule of the protocol is broken.
	Fault Severity = "fault"
	// Warning: somebody should look at it.
	Warning Severity = "warning"
	// Note explains something, and asks for nothing.
	Note Severity = "note"
)

// Code names what was found. Codes don't change.
type Code string

// The codes.
const (
	OverlappingWindow Code = "overlapping-window"
	TokenNotAbove     Code = "token-not-above"
	TokenOfExtension  Code = "extension-changes-term"
	GapInTerm         Code = "extension-not-contiguous"
	ExtensionReleased Code = "extension-after-release"
	ClaimReused       Code = "claim-reused"
	ReleaseOfOther    Code = "release-of-other-term"
	ReleaseMisplaced  Code = "release-misplaced"
	ChangesTerm       Code = "bookkeeping-changes-term"
	ChangesHolder     Code = "bookkeeping-changes-holder"
	OverrideMisplaced Code = "override-misplaced"
	Unreadable        Code = "unreadable-record"
	LedgerFull        Code = "ledger-full"
	WindowAhead       Code = "window-too-far-ahead"
	WindowTooLong     Code = "window-too-long"
	TokenAhead        Code = "token-too-far-ahead"
	ResetMisplaced    Code = "reset-misplaced"
	ResetOfSound      Code = "reset-without-cause"
	ResetTooEarly     Code = "reset-too-early"
	GapInKeys         Code = "gap-in-keys"
	KeyOutOfOrder     Code = "key-out-of-order"
	OtherWorkerType   Code = "other-worker-type"
	KeptTooFew        Code = "trimmed-too-much"
	TrimmedTooYoung   Code = "trimmed-too-young"
	TrimUnfinished    Code = "trim-unfinished"
	DoneGoesBack      Code = "done-goes-back"
	GrantAfterDone    Code = "grant-after-done"
	AboveFreeKey      Code = "above-free-key"
	UnreachableKey    Code = "unreachable-key"
	ReadBeforeWritten Code = "read-before-written"
	ReadBeforeFixed   Code = "read-before-fixed"
	FixedAfterStart   Code = "fixed-after-start"
	WrittenAhead      Code = "written-ahead"
	SlotTwice         Code = "slot-granted-twice"
	OutsideSlot       Code = "window-outside-slot"
	MixedSchedules    Code = "mixed-schedules"
	SlotNotInSchedule Code = "slot-not-in-schedule"
	MissedSlots       Code = "missed-slots"
	SkippedSlots      Code = "skipped-slots"
	RunCut            Code = "run-cut"
	GivenUp           Code = "given-up"
	BlockedLong       Code = "nothing-to-claim"
	RecordsLost       Code = "records-lost"
	UnreadableLedger  Code = "unreadable-ledger"
	BesideLost        Code = "granted-beside-lost"
	OverrideSeen      Code = "override"
	ResetSeen         Code = "reset"
	UnknownKind       Code = "unknown-kind"
	TypesDifferByCase Code = "types-differ-by-case"
	InvalidWorkerType Code = "invalid-worker-type"
)

const (
	findWriter  = "Find the program that wrote it: only workers of one slotlease ledger may write there. Treat work done under it as unfenced."
	checkRights = "Find out who deletes records: a TTL index, a retention policy, a restored backup or a person. Only workers may trim."
	checkClock  = "Compare the clocks of the store's servers, and raise the store's serverSkew if they may differ by so much."
	setBack     = "Look at the store's clock: leasectl doctor. Workers supersede the record by themselves. If the clock was never ahead, find the program that wrote it."
	lookAtSlots = "Look at leasectl inspect slots."
	missedByJob = lookAtSlots + " A slot of a job is missed if no worker is there within its StartWithin: start more workers, let it begin later, or have CatchUp run it late."
)

// rule is what is known of a code.
type rule struct {
	severity Severity
	remedy   string
}

var rules = map[Code]rule{
	OverlappingWindow: {Fault, "Two holders may have worked at once: check what both did by their tokens. " + findWriter},
	TokenNotAbove:     {Fault, "The token fences nobody: check what its holder wrote. " + findWriter},
	TokenOfExtension:  {Fault, findWriter},
	GapInTerm:         {Fault, findWriter},
	ExtensionReleased: {Fault, "Others may have worked from the release on: check what both did by their tokens. " + findWriter},
	ClaimReused:       {Fault, "A worker takes the record for its own: make sure that claims come from a random source, and that nobody copies records."},
	ReleaseOfOther:    {Fault, "Check whether the holder in force went on working. " + findWriter},
	ReleaseMisplaced:  {Fault, findWriter},
	ChangesTerm:       {Fault, "The term in force was moved, so its holder and others may have worked at once. " + findWriter},
	ChangesHolder:     {Fault, findWriter},
	OverrideMisplaced: {Fault, "Override again, by leasectl override: workers don't obey this one."},
	Unreadable:        {Fault, "If a newer version wrote it, verify with that version. " + findWriter},
	LedgerFull:        {Fault, "No key is left: begin a new ledger, under another worker type."},
	WindowAhead:       {Fault, "Workers supersede it by themselves. " + findWriter},
	WindowTooLong:     {Fault, "Workers supersede it by themselves. " + findWriter},
	TokenAhead:        {Fault, "Workers supersede it by themselves. " + findWriter},
	ResetMisplaced:    {Fault, findWriter},
	ResetOfSound:      {Fault, "It ended a term that was in force: check what its holder did from then on. " + findWriter},
	ResetTooEarly:     {Fault, "The record below may have been in force still, to a newer worker: check what its holder did. " + findWriter},
	GapInKeys:         {Fault, "Records are missing, and with them who held. " + checkRights},
	KeyOutOfOrder:     {Fault, "The store breaks its contract: run its conformance suite, testutil/storetest."},
	OtherWorkerType:   {Fault, "The key is that of this worker type and the record that of another: " + findWriter},
	KeptTooFew:        {Fault, "Records are missing that a late append could then store again. " + checkRights},
	TrimmedTooYoung:   {Fault, "An append that is under way could be stored again under a key that was used. " + checkRights},
	TrimUnfinished:    {Note, "The next trim removes what is left."},
	DoneGoesBack:      {Fault, "Slots that were done may run again. " + findWriter},
	GrantAfterDone:    {Fault, "The slot's work may have been done twice. " + findWriter},
	AboveFreeKey:      {Warning, "No worker follows it. Remove it by the store's own tools, once you know who wrote it."},
	UnreachableKey:    {Warning, "No worker follows it. Remove it by the store's own tools, once you know who wrote it."},
	ReadBeforeWritten: {Warning, checkClock},
	ReadBeforeFixed:   {Warning, checkClock},
	FixedAfterStart:   {Warning, checkClock},
	WrittenAhead:      {Warning, checkClock},
	SlotTwice:         {Warning, lookAtSlots + " Workers may have different schedules."},
	OutsideSlot:       {Warning, "Look whether the workers' versions and schedules are those that you mean."},
	MixedSchedules:    {Warning, "Give all workers of the type one schedule: with two, each claims slots of its own."},
	SlotNotInSchedule: {Warning, "Give all machines that run workers of the type, and this one, the same release of the tz database, or use a schedule in UTC."},
	MissedSlots:       {Warning, lookAtSlots + " Start more workers, or give them a longer lead."},
	SkippedSlots:      {Warning, "The job takes longer than its slots: give it longer ones, a time-out, or make it faster."},
	RunCut:            {Warning, lookAtSlots + " Its work may be half done: the next attempt must bear that."},
	GivenUp:           {Warning, "Its work isn't done, and nobody tries it again: do it by hand, if it matters, and see why it failed: leasectl inspect slots."},
	UnreadableLedger:  {Fault, "Nobody can lease by it: leasectl doctor says what to do."},
	RecordsLost:       {Warning, "It was flushed, restored, or failed over to a copy that lacked it: leasectl doctor says what the store keeps. What was recorded with it is gone, too."},
	BesideLost:        {Fault, "Two holders may have worked at once: check what both did by their tokens."},
	BlockedLong:       {Warning, "If its holder is gone, end it by leasectl override."},
	OverrideSeen:      {Note, "An operator ended what was in force; its holder may have worked on."},
	ResetSeen:         {Note, "Workers superseded what they could not obey."},
	UnknownKind:       {Note, "A newer version wrote it. It changes no lease."},
	TypesDifferByCase: {Warning, "They are different worker types, so both may lead at once: use one name."},
	InvalidWorkerType: {Warning, "No worker can have it. " + findWriter},
}

// SeverityOf is the severity of findings of a code that nothing has superseded.
func SeverityOf(c Code) Severity { return rules[c].severity }

// codeOf is the code for what a record breaks.
var codeOf = map[ledger.Rule]Code{
	ledger.Unreadable: Unreadable, ledger.Full: LedgerFull, ledger.WindowAhead: WindowAhead, ledger.TooLong: WindowTooLong,
	ledger.TokenAhead: TokenAhead, ledger.Override: OverrideMisplaced, ledger.Overlap: OverlappingWindow, ledger.Token: TokenNotAbove,
	ledger.ExtensionTerm: TokenOfExtension, ledger.ExtensionGap: GapInTerm, ledger.ExtensionLate: ExtensionReleased,
	ledger.OtherTerm: ReleaseOfOther, ledger.Release: ReleaseMisplaced, ledger.Bookkeeping: ChangesTerm, ledger.ResetLate: ResetMisplaced,
}
