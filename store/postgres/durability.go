package postgres

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var (
	_ store.Warner  = (*Ledger)(nil)
	_ store.Durable = (*Ledger)(nil)
)

// Warning says what could lose acknowledged records although the server is used, as of the last check, which is made
// at the first use and again every 10 min; it is empty if there is nothing. It asks nobody.
func (l *Ledger) Warning() string {
	f := l.known.Load()
	if f == nil {
		return ""
	}
	var all []string
	for _, flaw := range f.durabilityFlaws() {
		all = append(all, flaw.Error())
	}
	return strings.Join(all, "; ")
}

// durabilityFlaws are what could lose acknowledged records, or keep appends waiting.
func (f *facts) durabilityFlaws() (flaws []storekit.Flaw) {
	flaw := func(remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: CheckDurability, Remedy: remedy, What: fmt.Sprintf(format, args...)})
	}
	if f.Fsync == "off" {
		flaw("turn fsync on", "fsync is off: a crash of the machine may lose or spoil the ledger")
	}
	if f.FullPages == "off" {
		flaw("turn full_page_writes on, unless the file system never writes a part of a page", "full_page_writes is off: a crash of the machine may spoil the ledger")
	}
	switch {
	case f.SyncNames == "" && f.Standbys > 0:
		flaw("set synchronous_standby_names", "%s, none of them synchronous: a failover may lose the newest records, and two workers may then hold one slot", standbys(f.Standbys))
	case f.SyncNames != "" && f.SyncStandbys == 0:
		flaw("start a standby that synchronous_standby_names names", "no synchronous standby is connected: appends and reads wait for one")
	}
	return flaws
}

// standbys is a number of them, for people.
func standbys(n int) string {
	if n == 1 {
		return "1 standby is connected"
	}
	return fmt.Sprintf("%d standbys are connected", n)
}

// Durability says what survives, by what the last check found. See [store.Durable].
func (l *Ledger) Durability() store.Durability {
	f := l.known.Load()
	d := store.Durability{
		Crash: "All survive: a commit is in the log on disk before an append is acknowledged.",
		Power: "All survive, if the disk keeps what it was told to sync: a commit is synced before an append is acknowledged.",
	}
	if f == nil {
		d.Power = "Not known before the first use of the server: all survive unless fsync is off."
		d.Failover = "Not known before the first use of the server: all survive on a standby that is synchronous."
		return d
	}
	switch {
	case f.Fsync == "off":
		d.Power = "The newest may be lost, or the whole ledger spoiled: fsync is off."
	case f.FullPages == "off":
		d.Power = "All survive, if the file system never writes a part of a page: full_page_writes is off."
	}
	switch {
	case f.SyncNames != "":
		d.Failover = "All survive on a standby that is synchronous: an append is acknowledged when as many have it as synchronous_standby_names demands."
	case f.Standbys > 0:
		d.Failover = "The newest may be lost: no standby is synchronous."
	default:
		d.Failover = "No standby is connected: a backup that is restored lacks what came after it."
	}
	return d
}
