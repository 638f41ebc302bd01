package redis

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Warning says what could lose acknowledged records although the server is used, as of the last check, which is made
// at the first use and again every 10 min. It also names the rosters that the newest list of all presences leaves out. It is empty if
// there is nothing to say. It asks nobody.
func (l *Ledger) Warning() string {
	s := l.known.Load()
	if s == nil {
		return ""
	}
	var all []string
	for _, f := range l.flaws(*s) {
		if f.Check == CheckDurability && f.Level == store.LevelWarn {
			all = append(all, f.Error())
		}
	}
	if why := l.exceeds(); why != "" {
		all = append(all, why+": "+storekit.SetClocks)
	}
	if err := l.Unlisted(); err != nil {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

// mayTakeOver reports whether another server may have the ledger one day, as far as is known.
func (l *Ledger) mayTakeOver() bool {
	s := l.known.Load()
	return l.address.service != "" || l.failover || l.copies() > 0 || l.elsewhere.Load() != nil || s != nil && s.cluster
}

// copies is how many replicas have been seen at a time, at most, or sentinels know. One that is down may be back, and take over.
func (l *Ledger) copies() int { return int(max(l.most.Load(), l.listed.Load())) }

// sees takes note of a number of replicas.
func (l *Ledger) sees(replicas int) {
	for n := l.most.Load(); int64(replicas) > n && !l.most.CompareAndSwap(n, int64(replicas)); n = l.most.Load() {
	}
}

// mayLose reports whether a server that goes on with another line of changes may have lost what was acknowledged: it was restarted and
// isn't synced, or a replica that wasn't waited for has taken over.
func (l *Ledger) mayLose() bool {
	s := l.known.Load()
	synced := s != nil && s.syncing() == "always"
	covered := l.address.replicas > 0 && l.address.replicas >= l.copies()
	return !synced || l.mayTakeOver() && !covered
}

// syncing is when a server syncs its append-only file, a key of syncings.
func (s server) syncing() string {
	switch fsync := s.config["appendfsync"]; {
	case !s.appendOnly:
		return "none"
	case fsync == "always" && s.config["no-appendfsync-on-rewrite"] == "yes":
		return "not on rewrite"
	default:
		return fsync
	}
}

// syncings say what each way of syncing means: what survives a crash of the process and a loss of power, what is wrong with it, and
// the setting that helps.
var syncings = map[string]struct{ crash, power, flaw, setting string }{
	"": {
		crash: "All survive, but for up to 2 s if appendfsync is everysec: the server doesn't tell (CONFIG GET isn't allowed).",
		power: "All survive if appendfsync is always, and else the last seconds are lost: the server doesn't tell (CONFIG GET isn't allowed).",
	},
	"none": {
		crash:   "Those since the last snapshot are lost, or all if there is none: there is no append-only file.",
		power:   "Those since the last snapshot are lost, or all if there is none: there is no append-only file.",
		flaw:    "there is no append-only file (unsafeNoPersistence=true): a restart of the process loses acknowledged records",
		setting: "appendonly yes",
	},
	"always": {crash: allWritten, power: "All survive: each is synced to disk before it is acknowledged (appendfsync always)."},
	"not on rewrite": {
		crash:   allWritten,
		power:   "All survive, but for those that come while the append-only file is rewritten (no-appendfsync-on-rewrite yes).",
		flaw:    "no-appendfsync-on-rewrite is yes: a loss of power while the file is rewritten loses acknowledged records",
		setting: "no-appendfsync-on-rewrite no",
	},
	"everysec": {
		crash:   "All survive while the disk keeps up, and else up to 2 s are lost (appendfsync everysec).",
		power:   "Up to 2 s are lost (appendfsync everysec).",
		flaw:    "appendfsync is everysec: a loss of power, or a crash while the disk is slow, loses up to 2 s of acknowledged records",
		setting: "appendfsync always",
	},
	"no": {
		crash:   allWritten,
		power:   "Up to about 30 s are lost: the system writes the append-only file to disk when it likes (appendfsync no).",
		flaw:    "appendfsync is no: a loss of power loses up to about 30 s of acknowledged records",
		setting: "appendfsync always",
	},
}

const allWritten = "All survive: each is written to the append-only file before it is acknowledged."

var _ store.Described = (*Ledger)(nil)

// Describe says what the ledger knows of its store. See [store.Described].
func (l *Ledger) Describe() store.Description {
	return store.Description{
		Durability: l.Durability, Warning: l.Warning, InitScript: l.InitScript, CheckRights: l.CheckRights, Examine: l.Examine,
	}
}

// Durability says what survives, by what the server has said of itself so far.
func (l *Ledger) Durability() store.Durability {
	const unasked = "It isn't known yet: the server wasn't asked about its append-only file."
	d := store.Durability{Crash: unasked, Power: unasked, Failover: "The last moments are lost: appends don't wait for replicas (replicas=N in the URI)."}
	s := l.known.Load()
	if s != nil {
		d.Crash, d.Power = syncings[s.syncing()].crash, syncings[s.syncing()].power
	}
	if n := l.address.replicas; n > 0 {
		d.Failover = fmt.Sprintf("All survive if a replica takes over that has acknowledged the newest record, as at least %d have; any other may lack the last moments.", n)
	} else if s != nil && !l.mayTakeOver() {
		d.Failover = "There is no replica to take over; if one is added and does, it may lack the last moments."
	}
	return d
}
