package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Examiner = (*Ledger)(nil)

// Examine asks the server about itself, looks at the keys of the ledgers, and tries rights by commands that change
// nothing.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	if l.runner.Closed() {
		return nil, l.runner.Invalid("examine", store.ErrClosed)
	}
	e := &storekit.Exam{Clock: l.clock, Scrub: func(text string) string { return l.secrets.Scrub(text) }}
	s, err := l.examineConnection(ctx, e)
	l.examineTLS(e)
	if err != nil {
		e.Skip("no connection", CheckVersion, CheckPrimary, CheckEviction, CheckDurability, store.CheckServerClocks,
			store.CheckLedger, store.CheckExpiry, store.CheckConstraints, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster)
		return e.Found, nil
	}
	l.examineServer(e, s)
	l.examineKeys(ctx, e)
	l.examineRights(ctx, e)
	return e.Found, nil
}

// probe runs a part of an examination, on a server that may be unfit.
func probe[T any](ctx context.Context, l *Ledger, do func(ctx context.Context) (T, error)) (T, error) {
	return storekit.RunUnchecked(ctx, l.runner, "examine", "", func(ctx context.Context) (T, error) {
		return do(context.WithValue(ctx, anyServer{}, true))
	})
}

func (l *Ledger) examineConnection(ctx context.Context, e *storekit.Exam) (server, error) {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := l.clock.Now()
	s, err := probe(ctx, l, l.look)
	if err != nil {
		e.Failed(store.CheckConnection, store.LevelFail, err)
		return s, err
	}
	where := l.address.hosts[0]
	switch addr := l.elsewhere.Load(); {
	case addr != nil:
		where = *addr + ", which has the keys in the cluster of " + where
	case l.address.service != "":
		where = "the primary " + l.address.service + " of sentinels"
	}
	e.OK(store.CheckConnection, fmt.Sprintf("%s %s at %s answered in %v", s.product, s.shown, where, e.Since(began)))
	return s, nil
}

// examineTLS says how the connection is secured.
func (l *Ledger) examineTLS(e *storekit.Exam) {
	switch {
	case l.tls != nil && l.tls.InsecureSkipVerify && l.address.loopback():
		e.OK(store.CheckTLS, "encrypted, and the certificate isn't verified (insecureSkipVerify), to this machine alone")
	case l.tls != nil && l.tls.InsecureSkipVerify:
		e.Add(storekit.Flaw{Check: store.CheckTLS, What: "encrypted, but the server's certificate isn't verified", Remedy: "verify it"}.Finding(store.LevelWarn))
	case l.tls != nil:
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	case l.address.loopback():
		e.OK(store.CheckTLS, "not encrypted, to this machine alone")
	default:
		e.Add(storekit.Flaw{
			Check: store.CheckTLS, What: "not encrypted: whoever sees or changes the traffic sees and changes leases",
			Remedy: "turn TLS on at the server, and write rediss:// in the URI",
		}.Finding(store.LevelWarn))
	}
}

// examineServer judges what the server says of itself.
func (l *Ledger) examineServer(e *storekit.Exam, s server) {
	flaws := l.flaws(s)
	e.Flaws(CheckVersion, store.LevelFail, flaws, s.product+" "+s.shown)
	e.Flaws(CheckPrimary, store.LevelFail, flaws, fmt.Sprintf("a primary, with %d replicas connected", s.replicas))
	switch {
	case s.maxmemory == 0 && s.policy != "noeviction":
		e.Add(storekit.Flaw{
			Check: CheckEviction, What: fmt.Sprintf("maxmemory-policy is %.30s: as soon as maxmemory is set, the server deletes ledgers when memory gets scarce", s.policy),
			Remedy: "CONFIG SET maxmemory-policy noeviction",
		}.Finding(store.LevelWarn))
	default:
		e.Flaws(CheckEviction, store.LevelFail, flaws, "nothing is deleted when memory gets scarce (noeviction)")
	}
	l.examineDurability(e, s, flaws)
	if skew := l.skew(); skew > 0 {
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew): only the primary is asked", skew))
	} else {
		e.OK(store.CheckServerClocks, "one server, with one clock")
	}
}

func (l *Ledger) examineDurability(e *storekit.Exam, s server, flaws []storekit.Flaw) {
	refused := slices.ContainsFunc(flaws, func(f storekit.Flaw) bool { return f.Check == CheckDurability })
	lacks := l.durabilityFlaws(s)
	if refused {
		e.Flaws(CheckDurability, store.LevelFail, flaws, "")
	}
	if s.diskError {
		e.Add(storekit.Flaw{
			Check: CheckDurability, What: "the last snapshot or write of the append-only file failed: the server may refuse writes (MISCONF)",
			Remedy: "look at its log and disk",
		}.Finding(store.LevelWarn))
	}
	switch {
	case refused:
	case len(lacks) == 0 && s.config["appendfsync"] == "" && s.appendOnly:
		e.Skip("there is an append-only file, but the server doesn't say when it is synced: CONFIG GET appendfsync isn't allowed", CheckDurability)
	case s.diskError && len(lacks) == 0:
	default:
		e.Flaws(CheckDurability, store.LevelWarn, lacks, "each append is in the append-only file, and synced, before it is acknowledged")
	}
}

// examineKeys looks at types and times to live.
func (l *Ledger) examineKeys(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	type key struct{ name, kind string }
	type seen struct {
		ledgers, expiring, odd []string
	}
	got, err := probe(ctx, l, func(ctx context.Context) (got seen, err error) {
		keys := []key{{l.names.types(), "zset"}, {l.names.rosters(), "zset"}}
		for index, add := range map[string]func(name string) key{
			l.names.types():   func(name string) key { return key{l.names.ledger(name), "zset"} },
			l.names.rosters(): func(name string) key { return key{l.names.roster(name), "hash"} },
		} {
			names, err := l.members(ctx, index)
			if err != nil && !isCode(err, "WRONGTYPE") {
				return got, err
			}
			for _, name := range names {
				keys = append(keys, add(name))
			}
		}
		for some := range slices.Chunk(keys, atATime) {
			var asked []command
			for _, k := range some {
				asked = append(asked, command{"TYPE", k.name}, command{"PTTL", k.name})
			}
			replies, err := l.primaryAsk(ctx, asked...)
			if err != nil {
				return got, err
			}
			for i, k := range some {
				kind, ttl := replies[2*i], replies[2*i+1]
				if kind.err != nil || ttl.err != nil {
					return got, cmp.Or(kind.err, ttl.err)
				}
				isLedger := strings.HasPrefix(k.name, l.names.ledger(""))
				if kind.value != k.kind && kind.value != "none" {
					got.odd = append(got.odd, fmt.Sprintf("%.80s is a %.20v", k.name, kind.value))
				}
				if isLedger && kind.value == k.kind {
					got.ledgers = append(got.ledgers, k.name)
				}
				if n, _ := ttl.value.(int64); isLedger && n >= 0 {
					got.expiring = append(got.expiring, k.name)
				}
			}
		}
		return got, nil
	})
	if err != nil {
		for _, check := range []string{store.CheckLedger, store.CheckExpiry, store.CheckConstraints} {
			e.Failed(check, store.LevelFail, err)
		}
		return
	}
	e.OK(store.CheckLedger, fmt.Sprintf("%d worker types below %s, and nothing to create", len(got.ledgers), l.names.tag))
	slices.Sort(got.expiring)
	slices.Sort(got.odd)
	if len(got.expiring) > 0 {
		f := expires(got.expiring[0])
		if n := len(got.expiring) - 1; n > 0 {
			f.What += fmt.Sprintf(", and %d more have one", n)
		}
		e.Add(f.Finding(store.LevelFail))
	} else {
		e.OK(store.CheckExpiry, "no ledger has a time to live")
	}
	if len(got.odd) > 0 {
		e.Add(storekit.Flaw{Check: store.CheckConstraints, What: strings.Join(got.odd, ", ") + ": another program has made it", Remedy: "use another prefix"}.Finding(store.LevelFail))
	} else {
		e.OK(store.CheckConstraints, "all keys have the types of a ledger")
	}
}

// examineRights tries what workers do, in a way that changes nothing: also with a ledger that is for reading only, as
// that of leasectl doctor is.
func (l *Ledger) examineRights(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	for _, r := range []struct {
		check    string
		level    store.Level
		commands []command
		granted  string
		remedy   string
	}{
		{store.CheckRead, store.LevelFail, l.reading(), "the scripts of reads are granted", "+eval +evalsha +time +pttl +zcount +zcard +zrange +zrangebyscore +zrevrangebyscore"},
		{store.CheckAppend, store.LevelFail, l.appending(), "granted, by a ZADD that adds nothing", "+zadd, and with replicas= also +set +wait"},
		{store.CheckTrim, store.LevelWarn, l.trimming(), "granted, by the removal of nothing", "+zremrangebyrank"},
		{store.CheckRoster, store.LevelWarn, l.attending(), "granted, by commands that change nothing", "+hset +hdel +hgetall +zadd +zrange"},
	} {
		_, err := probe(ctx, l, func(ctx context.Context) (none struct{}, err error) { return none, l.try(ctx, r.commands) })
		if err == nil {
			e.OK(r.check, r.granted)
		} else {
			e.Failed(r.check, r.level, err)
			if last := &e.Found[len(e.Found)-1]; last.Remedy == "" && errors.Is(err, store.ErrDenied) {
				last.Remedy = fmt.Sprintf("ACL SETUSER USER ~%s* %s", l.names.tag, r.remedy)
			}
		}
	}
}
