package sqlite

import (
	"runtime"

	"github.com/slotlease/slotlease/store"
)

var _ store.Described = (*Ledger)(nil)

// Describe says what the ledger knows of its store. See [store.Described].
func (l *Ledger) Describe() store.Description {
	return store.Description{
		Durability: l.Durability, Warning: l.Warning, InitScript: l.InitScript, CheckRights: l.CheckRights, Examine: l.Examine,
	}
}

// Durability says what outlives a crash of a worker or of the machine.
func (l *Ledger) Durability() store.Durability {
	return store.Durability{
		Crash:    "All survive: an append is in the file's log before it is acknowledged.",
		Power:    afterPowerLoss(runtime.GOOS, l.o.UnsafeFileSystem),
		Failover: "There is no copy: a backup that is restored lacks what came after it.",
	}
}

// afterPowerLoss is what survives that, where the file is synced before an append is acknowledged.
func afterPowerLoss(system string, unsafe bool) string {
	switch {
	case unsafe:
		return "All survive if the file system, which isn't known to, keeps what it was told to sync."
	case system == "darwin":
		return "All that the drive has written survive: macOS hands an append to the drive, which may keep it in its cache for a while."
	}
	return "All survive, if the disk keeps what it was told to sync: an append is synced before it is acknowledged."
}
