package store

import "context"

// Examiner is a Ledger that can find out whether it is set up right: by what its workers refuse, and by
// what costs them slots, or would cost them the ledger.
type Examiner interface {
	// Examine asks the store for all that only it knows of itself, and stores nothing: a right is tried
	// without storing, or by what the store says of it. It returns one Finding for each check, and those that
	// failed, too: a fault hides no other, unless nothing can be asked without what is missing. Such checks
	// have LevelSkip, with the reason. It works on a store that operations refuse.
	//
	// It returns by the end of ctx at the latest, with what was found by then. The error says why there is no
	// Finding at all, as after Close. It is for people, and takes some round trips: don't call it in each slot.
	Examine(ctx context.Context) ([]Finding, error)
}

// Level is how bad a Finding is.
type Level string

// The levels.
const (
	// LevelOK: as it should be.
	LevelOK Level = "ok"
	// LevelWarn: workers can go on, but somebody should see to it.
	LevelWarn Level = "warn"
	// LevelFail: workers can't use the store, or must not.
	LevelFail Level = "fail"
	// LevelSkip: it could not be found out.
	LevelSkip Level = "skip"
)

// Finding is what one check found.
type Finding struct {
	// Check names the check, in lower case with hyphens, such as append-right. Names don't change.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Text is what was found, or why it wasn't, in one line without secrets.
	Text string `json:"text"`
	// Remedy is what to do about it, in one line; empty if nothing is to be done, or the store doesn't know.
	Remedy string `json:"remedy,omitzero"`
	// Err is the error behind it, if there is one.
	Err error `json:"-"`
}

// The checks of more than one store. docs/leasectl.md explains all.
const (
	// CheckConnection: the store answers.
	CheckConnection = "connection"
	// CheckTLS: the connection is encrypted, and the server's name verified.
	CheckTLS = "tls"
	// CheckLedger: Init ran.
	CheckLedger = "ledger"
	// CheckAppend, CheckRead, CheckTrim and CheckRoster: the rights suffice.
	CheckAppend = "append-right"
	CheckRead   = "read-right"
	CheckTrim   = "trim-right"
	CheckRoster = "roster-right"
	// CheckExpiry: nothing deletes the newest record by itself.
	CheckExpiry = "expiry"
	// CheckConstraints: nothing but the key keeps records out, and nothing changes them.
	CheckConstraints = "constraints"
	// CheckServerClocks: the clocks of the store's servers agree.
	CheckServerClocks = "server-clocks"
)
