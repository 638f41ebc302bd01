package redis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckVersion: the server knows all that is asked of it.
	CheckVersion = "version"
	// CheckPrimary: the server is a primary, and the only one.
	CheckPrimary = "primary"
	// CheckEviction: the server deletes nothing when memory gets scarce.
	CheckEviction = "eviction"
	// CheckDurability: what is acknowledged outlives crashes.
	CheckDurability = "durability"
)

// flaws are the rules about what a server says of itself: what is wrong with it. One with LevelFail keeps it from being used.
func (l *Ledger) flaws(s server) (all []storekit.Flaw) {
	add := func(is bool, check string, level store.Level, remedy, format string, args ...any) {
		if is {
			all = append(all, storekit.Flaw{Check: check, Level: level, Remedy: remedy, What: fmt.Sprintf(format, args...)})
		}
	}
	const fail, warn, two = store.LevelFail, store.LevelWarn, ", and then two workers may hold one slot"
	add(!since(s.version, 6, 2), CheckVersion, fail, "use Redis 6.2 or later, or Valkey", "the server is version %.20q", s.version)
	add(s.isReplica(), CheckPrimary, fail, "use the address of the primary", "the server is a replica of %.100s", s.primary)
	add(!s.isReplica() && s.role != "master", CheckPrimary, fail, "use a server that has one primary",
		"the server has the role %.20q: several servers may accept one key", s.role)

	evicts, keep := s.policy != "noeviction", s.set("maxmemory-policy noeviction")
	add(evicts && s.maxmemory > 0, CheckEviction, fail, keep,
		"the server deletes keys when it has used %d bytes of memory (maxmemory-policy %.30s), and would delete ledgers", s.maxmemory, s.policy)
	add(evicts && s.maxmemory == 0, CheckEviction, warn, keep,
		"maxmemory-policy is %.30s: as soon as maxmemory is set, the server deletes ledgers when memory gets scarce", s.policy)

	add(s.diskError, CheckDurability, warn, "look at its log and disk",
		"the last snapshot or write of the append-only file failed: the server may refuse writes (MISCONF)")
	accepted, syncing := l.address.unpersistent, syncings[s.syncing()]
	add(!s.appendOnly && !accepted, CheckDurability, fail, s.set("appendonly yes")+"; or accept that by unsafeNoPersistence=true",
		"the server has no append-only file: a restart of its process loses acknowledged records%s", two)
	add(s.incomplete() && !accepted, CheckDurability, fail,
		"wait for its end (INFO persistence, aof_rewrite_in_progress), and look at the server's log and disk if there is none", incomplete)
	add(syncing.flaw != "" && (s.appendOnly || accepted), CheckDurability, warn, s.set(syncing.setting), "%s%s", syncing.flaw, two)

	const others = "where N is the number of all replicas that may take over, also of those that aren't connected at the moment"
	switch n := l.address.replicas; {
	case n > s.replicas:
		add(true, CheckDurability, warn, "start the others again; N is lowered only for a replica that was removed for good",
			"replicas=%d, and there are %d: appends and reads fail", n, s.replicas)
	case n == 0 && l.mayTakeOver():
		add(true, CheckDurability, warn, "add replicas=N to the URI, "+others,
			"appends don't wait for replicas (%d are connected): a failover may lose the newest records%s", s.replicas, two)
	case n < l.copies():
		remedy := "set replicas=N in the URI, " + others
		if l.listed.Load() > int64(s.replicas) {
			remedy += "; sentinels know replicas that are gone for good until SENTINEL RESET"
		}
		add(true, CheckDurability, warn, remedy, "appends wait for %d of %d replicas: a failover to another one may lose the newest records%s", n, l.copies(), two)
	}
	return all
}

// set is how to change a setting for good. CONFIG SET alone is forgotten at the next start of the server, and with the append-only
// file all that was in it.
func (s server) set(setting string) string {
	if s.configFile == "" {
		return "start the server with " + setting + " in its configuration: it has no redis.conf, in which CONFIG REWRITE would keep what CONFIG SET changes"
	}
	return "CONFIG SET " + setting + " and then CONFIG REWRITE, which keeps it in " + s.configFile + ": otherwise the next start forgets it"
}

// expires is the flaw of a key that the server will delete.
func expires(key string) storekit.Flaw {
	return storekit.Flaw{Check: store.CheckExpiry, What: "the key " + key + " has a time to live, at whose end the server deletes the ledger", Remedy: "PERSIST " + key}
}

// Examine asks the server about itself, looks at the keys of the ledgers, and tries rights by commands that change
// nothing.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	e := &exam{Ledger: l}
	rows := append(e.rows(), l.rights()...)
	for i, row := range rows { // The server may be unfit.
		rows[i].Ask = func(ctx context.Context) (string, error) { return row.Ask(context.WithValue(ctx, anyServer{}, true)) }
	}
	return (&storekit.Checks{Rows: rows, Runner: l.runner, Clock: l.clock}).Examine(ctx)
}

// exam is one examination: what its rows have found that later ones judge. A row that has run out of time may still be asking beside
// the next one.
type exam struct {
	*Ledger

	server server
	survey atomic.Pointer[survey]    // nil until the others were asked
	keys   atomic.Pointer[keysFound] // nil until they are known
}

// rows is the table of checks, but for those of rights.
func (e *exam) rows() []storekit.Check {
	// judged are the rules about a server that have one check.
	judged := func(check string, sound func() string) storekit.Check {
		return storekit.Check{Name: check, Level: store.LevelFail, Ask: func(context.Context) (string, error) {
			flaws := e.flawsOf(check)
			if check == CheckDurability && len(flaws) == 0 && e.server.syncing() == "" {
				return "", storekit.Skip("there is an append-only file, but the server doesn't say when it is synced: CONFIG GET appendfsync isn't allowed")
			}
			return storekit.Found(sound(), flaws...)
		}}
	}
	text := func(s string) func() string { return func() string { return s } }
	keys := func(check string, judge func(k *keysFound) (string, error)) storekit.Check {
		return storekit.Check{Name: check, Level: store.LevelFail, Ask: func(context.Context) (string, error) {
			if k := e.keys.Load(); k != nil {
				return judge(k)
			}
			return "", storekit.Skip("see ledger")
		}}
	}
	return []storekit.Check{
		{Name: store.CheckConnection, Level: store.LevelFail, Ask: e.answered, Needed: "no connection"},
		{Name: store.CheckTLS, Level: store.LevelWarn, Ask: e.secured, Alone: true},
		judged(CheckVersion, func() string { return e.server.product + " " + e.server.shown }),
		{Name: CheckPrimary, Level: store.LevelFail, Ask: e.onlyPrimary, Slow: true}, // Sentinels get time to agree.
		judged(CheckEviction, text("nothing is deleted when memory gets scarce (noeviction)")),
		judged(CheckDurability, text("each append is in the append-only file, and synced, before it is acknowledged")),
		{Name: store.CheckServerClocks, Level: store.LevelWarn, Ask: e.compared},
		{Name: store.CheckLedger, Level: store.LevelFail, Ask: e.lookAtKeys},
		keys(store.CheckExpiry, (*keysFound).lasting), keys(store.CheckConstraints, (*keysFound).typed),
	}
}

func (e *exam) flawsOf(check string) []storekit.Flaw {
	return slices.DeleteFunc(e.flaws(e.server), func(f storekit.Flaw) bool { return f.Check != check })
}

func (e *exam) answered(ctx context.Context) (_ string, err error) {
	if e.server, err = e.look(ctx); err != nil {
		return "", err
	}
	where := e.address.hosts[0]
	switch addr := e.elsewhere.Load(); {
	case addr != nil:
		where = *addr + ", which has the keys in the cluster of " + where
	case e.address.service != "":
		where = "the primary " + e.address.service + " of sentinels"
	}
	return fmt.Sprintf("%s %s at %s answered", e.server.product, e.server.shown, where), nil
}

// secured says how the connection is secured.
func (e *exam) secured(context.Context) (string, error) {
	f := storekit.Flaw{
		Check: store.CheckTLS, What: "not encrypted: whoever sees or changes the traffic sees and changes leases",
		Remedy: "turn TLS on at the server, and write rediss:// in the URI",
	}
	switch {
	case e.tls != nil && e.tls.InsecureSkipVerify && e.address.loopback():
		return "encrypted, and the certificate isn't verified (insecureSkipVerify), to this machine alone", nil
	case e.tls != nil && e.tls.InsecureSkipVerify:
		f.What, f.Remedy = "encrypted, but the server's certificate isn't verified", "verify it"
	case e.tls != nil:
		return "encrypted, and the server's certificate is verified", nil
	case e.address.loopback():
		return "not encrypted, to this machine alone", nil
	}
	return storekit.Found("", f)
}

// onlyPrimary looks for other servers, too. Sentinels get time to agree.
func (e *exam) onlyPrimary(ctx context.Context) (string, error) {
	found := e.surveyAll(ctx, e.server)
	split, settled := e.split(found)
	if !settled {
		timer := e.clock.Timer(agreeTime)
		defer timer.Stop()
		select {
		case <-timer.C:
			again := e.surveyAll(ctx, e.server)
			if later, _ := e.split(again); len(later) > 0 || again.knows(found) {
				split = later
			}
			found = again
		case <-ctx.Done():
		}
	}
	e.survey.Store(&found)
	return storekit.Found(fmt.Sprintf("a primary, with %d replicas connected", e.server.replicas), append(e.flawsOf(CheckPrimary), split...)...)
}

func (e *exam) compared(ctx context.Context) (string, error) {
	found := e.survey.Load()
	switch assumed := e.assumed(); {
	case found == nil:
		return "", storekit.Skip("see primary")
	case assumed == 0:
		return "one server, with one clock", nil
	case e.exceeds() != "":
		return storekit.Found("", storekit.Flaw{Check: store.CheckServerClocks, What: e.exceeds(), Remedy: storekit.SetClocks})
	case e.unmeasured(*found) != "":
		return storekit.Assumed(assumed, e.unmeasured(*found)).Ask(ctx)
	}
	return fmt.Sprintf("apart by %v at most, as measured", found.clocks.Most.Round(time.Millisecond)), nil
}

// keysFound are the keys of ledgers with a time to live, and what another program has made.
type keysFound struct {
	expiring []string
	odd      []oddKey
	unlisted bool // the index of ledgers can't be read, so that there may be others
}

// oddKey is a key of another type than its own.
type oddKey struct {
	name, kind string
	types      bool // the index of ledgers
	roster     bool
}

func (k oddKey) String() string { return fmt.Sprintf("%.80s is a %.20s", k.name, k.kind) }

func (k *keysFound) lasting() (string, error) {
	if len(k.expiring) == 0 && k.unlisted {
		return "", storekit.Skip("see constraints: which ledgers there are isn't known")
	}
	if len(k.expiring) == 0 {
		return "no ledger has a time to live", nil
	}
	f := expires(k.expiring[0])
	if n := len(k.expiring) - 1; n > 0 {
		f.What += fmt.Sprintf(", and %d more have one", n)
	}
	return storekit.Found("", f)
}

func (k *keysFound) typed() (string, error) {
	if len(k.odd) == 0 {
		return "all keys have the types of a ledger", nil
	}
	var flaws []storekit.Flaw
	for _, key := range k.odd {
		f := storekit.Flaw{Check: store.CheckConstraints, What: key.String() + ": another program has made it", Remedy: "beside another program use another prefix; else stop the workers of that type, restore the key, or remove it with DEL, and start them once the last lease is over"}
		if key.types {
			f.Remedy = "remove it with DEL, and name each worker type anew with ZADD " + key.name + " 0 TYPE: by themselves they come back with every 32nd record only, and meanwhile lists lack them"
		}
		if key.roster {
			f.Level, f.Remedy = store.LevelWarn, "remove it with DEL, after which workers enter themselves again within 5 min: no lease depends on it"
		}
		flaws = append(flaws, f)
	}
	return storekit.Found("", flaws...)
}

// lookAtKeys looks at the types and times to live of all keys.
func (e *exam) lookAtKeys(ctx context.Context) (string, error) {
	type key struct{ name, kind string }
	keys := []key{{e.names.types(), "zset"}, {e.names.rosters(), "zset"}}
	var got keysFound
	known := map[string]bool{} // worker types, by either index
	for _, index := range []string{e.names.types(), e.names.rosters()} {
		types, err := e.members(ctx, index)
		if err != nil && !isCode(err, "WRONGTYPE") {
			return "", err
		}
		got.unlisted = got.unlisted || err != nil && index == e.names.types()
		for _, workerType := range types {
			known[workerType] = true
		}
	}
	for _, workerType := range slices.Sorted(maps.Keys(known)) {
		keys = append(keys, key{e.names.ledger(workerType), "zset"}, key{e.names.roster(workerType), "hash"})
	}
	ledgers := 0
	for some := range slices.Chunk(keys, atATime) {
		var asked []command
		for _, k := range some {
			asked = append(asked, command{"TYPE", k.name}, command{"PTTL", k.name})
		}
		replies, _, err := e.exchange(ctx, asked...)
		if err != nil {
			return "", err
		}
		for i, k := range some {
			kind, err := replies[2*i].Text()
			ttl, ttlErr := replies[2*i+1].Int64()
			if err := cmp.Or(err, ttlErr); err != nil {
				return "", err
			}
			if kind != k.kind && kind != "none" {
				roster := k.name == e.names.rosters() || strings.HasPrefix(k.name, e.names.roster(""))
				got.odd = append(got.odd, oddKey{k.name, kind, k.name == e.names.types(), roster})
			}
			if strings.HasPrefix(k.name, e.names.ledger("")) {
				if kind == k.kind {
					ledgers++
				}
				if ttl >= 0 {
					got.expiring = append(got.expiring, k.name)
				}
			}
		}
	}
	slices.Sort(got.expiring)
	slices.SortFunc(got.odd, func(a, b oddKey) int { return strings.Compare(a.name, b.name) })
	e.keys.Store(&got)
	return fmt.Sprintf("%d worker types below %s, and nothing to create", ledgers, e.names.tag), nil
}
