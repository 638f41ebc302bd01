package store

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

// The checks of more than one store. docs/checks.md explains all.
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
