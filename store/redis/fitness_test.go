package redis

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A look at the keys that ran out of time has found nothing, which isn't that there is nothing to find.
func TestWhatWasNotLookedAtIsNotCalledSound(t *testing.T) {
	t.Parallel()
	e := &exam{}
	for _, row := range e.rows() {
		if row.Name != store.CheckExpiry && row.Name != store.CheckConstraints {
			continue
		}
		if text, err := row.Ask(t.Context()); err == nil {
			t.Errorf("%s says %q of keys that are not known", row.Name, text)
		}
	}
}

// examined is the findings of a ledger, by check.
func examined(t testing.TB, l *Ledger) map[string][]store.Finding {
	t.Helper()
	found, err := l.Examine(suites.Deadline(t))
	must(t, "Examine()", err)
	by := map[string][]store.Finding{}
	for _, f := range found {
		if f.Text == "" || strings.Contains(f.Text+f.Remedy, "secret") {
			t.Errorf("finding %+v, want one with a text and without secrets", f)
		}
		by[f.Check] = append(by[f.Check], f)
	}
	return by
}

// wantFinding demands one finding of a check with a level and texts.
func wantFinding(t testing.TB, by map[string][]store.Finding, check string, level store.Level, texts ...string) {
	t.Helper()
	if !slices.ContainsFunc(by[check], func(f store.Finding) bool {
		return f.Level == level && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(f.Text+" "+f.Remedy, text) })
	}) {
		t.Errorf("findings of %s = %+v, want one of level %s with %q", check, by[check], level, texts)
	}
}

var allChecks = []string{
	store.CheckConnection, store.CheckTLS, CheckVersion, CheckPrimary, CheckEviction, CheckDurability, store.CheckServerClocks,
	store.CheckLedger, store.CheckExpiry, store.CheckConstraints, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster,
}

func TestASoundServerIsFoundSound(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	l := open(t, s.URI())
	must(t, "Init()", l.Init(t.Context()))
	must(t, "Append()", appendTo(t, l, 1))
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a")}))
	admin := raw(t, s.URI())
	before := snapshot(t, admin)
	by := examined(t, l)
	must(t, "CheckRights()", l.CheckRights(t.Context()))
	for _, check := range allChecks {
		wantFinding(t, by, check, store.LevelOK)
		if len(by[check]) != 1 {
			t.Errorf("%s has %d findings, want one", check, len(by[check]))
		}
	}
	if got := snapshot(t, admin); got != before {
		t.Errorf("Examine and CheckRights changed %s to %s", before, got)
	}
	if d := l.Durability(); !strings.HasPrefix(d.Crash, "All survive: ") || !strings.HasPrefix(d.Power, "All survive: ") || !strings.Contains(d.Failover, "no replica to take over") {
		t.Errorf("Durability() = %+v, want that all survive, and that nobody takes over", d)
	}
	if w := l.Warning(); w != "" {
		t.Errorf("Warning() = %q, want none", w)
	}
	s.Kill()
	by = examined(t, l)
	wantFinding(t, by, store.CheckConnection, store.LevelFail, "refused")
	for _, check := range allChecks[2:] {
		wantFinding(t, by, check, store.LevelSkip)
	}
	must(t, "Close()", l.Close(t.Context()))
	if _, err := l.Examine(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Examine() after Close = %v, want ErrClosed", err)
	}
}

// snapshot is all that a server stores.
func snapshot(t testing.TB, c *goredis.Client) string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	must(t, "KEYS", err)
	slices.Sort(keys)
	text := ""
	for _, k := range keys {
		text += k + "=" + do(t, c, "DUMP", k) + "\n"
	}
	return text
}

// Each fault is planted on a server that a handle has used, and on one that a handle meets.
func TestAnUnfitServerIsRefusedAndExaminedAsSuch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, check, text string
		level             store.Level
		refused           bool
		flags             []string
		durable           string
		plant             func(t *testing.T, s *redispeer.Server, admin *goredis.Client)
	}{
		{"eviction", CheckEviction, "allkeys-lru", store.LevelFail, true, []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, "", nil},
		{"eviction of keys with a time to live", CheckEviction, "volatile-ttl", store.LevelFail, true, []string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"}, "", nil},
		{"eviction as soon as there is a limit", CheckEviction, "as soon as", store.LevelWarn, false, []string{"--maxmemory-policy", "allkeys-lru"}, "", nil},
		{"no append-only file", CheckDurability, "unsafeNoPersistence", store.LevelFail, true, []string{"--appendonly", "no"}, "no append-only file", nil},
		{"snapshots alone", CheckDurability, "unsafeNoPersistence", store.LevelFail, true, []string{"--appendonly", "no", "--save", "60 1"}, "since the last snapshot", nil},
		{"a sync each second", CheckDurability, "everysec", store.LevelWarn, false, []string{"--appendfsync", "everysec"}, "Up to 2 s are lost", nil},
		{"no sync", CheckDurability, "appendfsync is no", store.LevelWarn, false, []string{"--appendfsync", "no"}, "about 30 s", nil},
		{"no sync during a rewrite", CheckDurability, "no-appendfsync-on-rewrite", store.LevelWarn, false, []string{"--no-appendfsync-on-rewrite", "yes"}, "is rewritten", nil},
		{"a replica", CheckPrimary, "replica of 127.0.0.1", store.LevelFail, true, nil, "", func(t *testing.T, _ *redispeer.Server, admin *goredis.Client) {
			do(t, admin, "REPLICAOF", "127.0.0.1", "1")
		}},
		{"a time to live", store.CheckExpiry, "PERSIST {slotlease}:ledger:job", store.LevelFail, true, nil, "", func(t *testing.T, _ *redispeer.Server, admin *goredis.Client) {
			do(t, admin, "ZADD", "{slotlease}:types", 0, "job")
			do(t, admin, "ZADD", "{slotlease}:ledger:job", 7, "{}")
			do(t, admin, "EXPIRE", "{slotlease}:ledger:job", 1000)
		}},
		{"a hash in place of a ledger", store.CheckConstraints, "{slotlease}:ledger:job is a hash", store.LevelFail, true, nil, "", func(t *testing.T, _ *redispeer.Server, admin *goredis.Client) {
			do(t, admin, "ZADD", "{slotlease}:types", 0, "job")
			do(t, admin, "HSET", "{slotlease}:ledger:job", "a", "b")
		}},
		{"a string in place of the types", store.CheckConstraints, "{slotlease}:types is a string", store.LevelFail, true, nil, "", func(t *testing.T, _ *redispeer.Server, admin *goredis.Client) {
			do(t, admin, "SET", "{slotlease}:types", "a")
		}},
		{"no room", store.CheckAppend, "OOM", store.LevelFail, false, nil, "", func(t *testing.T, _ *redispeer.Server, admin *goredis.Client) {
			do(t, admin, "CONFIG", "SET", "maxmemory", 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := redispeer.Start(t, redispeer.Options{Flags: c.flags})
			if c.plant != nil {
				c.plant(t, s, raw(t, s.URI()))
			}
			l := open(t, s.URI())
			wantFinding(t, examined(t, l), c.check, c.level, c.text)
			err := appendTo(t, l, 1)
			if errors.Is(err, store.ErrRefused) != c.refused || c.refused && !errors.Is(err, store.ErrNotStored) {
				t.Errorf("Append() = %v, want it refused: %v", err, c.refused)
			}
			if w := l.Warning(); c.refused && w != "" {
				t.Errorf("Warning() = %q, want none of a server that is refused", w)
			}
			if d := l.Durability(); c.durable != "" && !strings.Contains(d.Crash+" "+d.Power, c.durable) {
				t.Errorf("Durability() = %+v, want %q", d, c.durable)
			}
			// Only a time to live and a foreign key are those of one ledger.
			if err := l.Init(t.Context()); errors.Is(err, store.ErrRefused) != (c.refused && c.check != store.CheckExpiry && c.check != store.CheckConstraints) {
				t.Errorf("Init() = %v, want it refused: %v", err, c.refused)
			}
		})
	}
}

// A server that is told to keep an append-only file writes all into it first. Until that is over, a crash loses the ledger.
func TestAnAppendOnlyFileCountsOnceItIsComplete(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{Flags: []string{"--appendonly", "no"}})
	admin := raw(t, s.URI())
	do(t, admin, "SET", "other", "1")
	l := open(t, s.URI())
	wantRefusal(t, "Append() without the file", appendTo(t, l, 1), store.ErrRefused, "no append-only file")
	do(t, admin, "CONFIG", "SET", "rdb-key-save-delay", "100000000")
	do(t, admin, "CONFIG", "SET", "appendonly", "yes")
	await(t, "the first rewrite", func() bool { return strings.Contains(do(t, admin, "INFO", "persistence"), "aof_rewrite_in_progress:1") })
	wantRefusal(t, "Append() during the first rewrite", appendTo(t, l, 1), nil, "for the first time")
	wantFinding(t, examined(t, l), CheckDurability, store.LevelFail, "for the first time")
	// The process that writes the file is killed by the server itself.
	do(t, admin, "CONFIG", "SET", "appendonly", "no")
	do(t, admin, "CONFIG", "SET", "rdb-key-save-delay", "0")
	do(t, admin, "CONFIG", "SET", "appendonly", "yes")
	await(t, "an append after the first rewrite", func() bool { return appendTo(t, l, 1) == nil })
	// Later ones leave what there is as it is.
	do(t, admin, "CONFIG", "SET", "rdb-key-save-delay", "100000000")
	do(t, admin, "BGREWRITEAOF")
	must(t, "Append() during another rewrite", appendTo(t, open(t, s.URI()), 2))
}

// What CONFIG SET changes is gone at the next start, unless something keeps it.
func TestRemediesLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ file, keeps string }{{"", "no redis.conf"}, {dir + "/redis.conf", "CONFIG REWRITE"}} {
		flags := []string{"--appendonly", "no", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--appendfsync", "no"}
		if c.file != "" {
			must(t, "WriteFile()", os.WriteFile(c.file, []byte("# a comment\n"), 0o600))
		}
		s := redispeer.Start(t, redispeer.Options{Flags: flags, Config: c.file})
		by := examined(t, open(t, s.URI()))
		for _, f := range slices.Concat(by[CheckDurability], by[CheckEviction], examined(t, open(t, s.URI()+"?unsafeNoPersistence=true"))[CheckDurability]) {
			if !strings.Contains(f.Remedy, c.keeps) {
				t.Errorf("the remedy for %q is %q, want that it names %q", f.Text, f.Remedy, c.keeps)
			}
		}
	}
}

// What is wrong with a server while a ledger is in use shows at the next check.
func TestAServerThatBecomesUnfitIsRefusedThen(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	l := open(t, s.URI())
	must(t, "Append()", appendTo(t, l, 1))
	admin := raw(t, s.URI())
	do(t, admin, "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	do(t, admin, "CONFIG", "SET", "maxmemory", "100mb")
	if err := l.Init(t.Context()); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Init() = %v, want ErrRefused", err)
	}
	if err := appendTo(t, l, 2); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Append() = %v, want ErrRefused", err)
	}
	do(t, admin, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	must(t, "Append() when that is mended", appendTo(t, l, 2))
}

// A server may come back with another configuration, and without what it was told. It is asked before it is used.
func TestAServerIsAskedOverEachNewConnection(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	l := open(t, s.URI())
	must(t, "Append()", appendTo(t, l, 1))
	admin := raw(t, s.URI())
	do(t, admin, "CONFIG", "SET", "appendonly", "no")
	_, _, err := l.Tail(t.Context(), "job", 1)
	must(t, "Tail() by the connection that there is", err)
	do(t, admin, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	for what, op := range operations {
		if what == "Watch" {
			continue // It reads nothing.
		}
		if err := op(t.Context(), l); !errors.Is(err, store.ErrRefused) {
			t.Errorf("%s by a new connection = %v, want ErrRefused", what, err)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"6.2.0": true, "7.0.15": true, "10.1": true, "6.0.16": false, "5.0.14": false, "": false, "7": false, "x.y": false} {
		if got := since(version, 6, 2); got != want {
			t.Errorf("since(%q, 6, 2) = %v, want %v", version, got, want)
		}
	}
	s := parseInfo("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\nrole:master\r\nconnected_slaves:2\r\n")
	if s.product != "Valkey" || s.shown != "8.0.1" || s.version != "7.2.4" || s.role != "master" || s.replicas != 2 {
		t.Errorf("parseInfo() = %+v, want Valkey 8.0.1, a primary with 2 replicas", s)
	}
	// KeyDB's active replicas all take writes.
	l := open(t, "redis://127.0.0.1/0")
	if flaws := l.flaws(server{version: "6.3.4", role: "active-replica", appendOnly: true, policy: "noeviction"}); len(flaws) != 1 || flaws[0].Check != CheckPrimary || flaws[0].Level != store.LevelFail {
		t.Errorf("flaws of an active replica = %v, want that it is refused", flaws)
	}
}

// The rights of the package documentation suffice, and no fewer.
func TestTheRightsOfTheDocumentationSuffice(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	admin := raw(t, s.URI())
	grant := documentedRights(t)
	user := func(rights ...string) *Ledger {
		do(t, admin, "ACL", "DELUSER", "worker")
		args := []any{"ACL", "SETUSER", "worker", "on", ">s3cret-pass"}
		for _, r := range rights {
			args = append(args, r)
		}
		do(t, admin, args...)
		return open(t, strings.Replace(s.URI(), "redis://", "redis://worker:s3cret-pass@", 1)+"?replicas=0")
	}
	l := user(grant...)
	must(t, "Init()", l.Init(t.Context()))
	must(t, "CheckRights()", l.CheckRights(t.Context()))
	must(t, "Append()", appendTo(t, l, 1))
	must(t, "Append()", appendTo(t, l, 2))
	if _, _, err := l.Tail(t.Context(), "job", 9); err != nil {
		t.Errorf("Tail() = %v, want nil", err)
	}
	if n, err := l.Trim(t.Context(), "job", 2); n != 1 || err != nil {
		t.Errorf("Trim() = %d, %v, want 1", n, err)
	}
	if types, err := l.WorkerTypes(t.Context()); len(types) != 1 || err != nil {
		t.Errorf("WorkerTypes() = %q, %v, want job", types, err)
	}
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a")}))
	must(t, "Leave()", l.Leave(t.Context(), "job", []string{"a"}))
	if _, err := l.Presences(t.Context(), ""); err != nil {
		t.Errorf("Presences() = %v, want nil", err)
	}
	for check, found := range examined(t, l) {
		for _, f := range found {
			if f.Level != store.LevelOK && check != CheckDurability { // CONFIG GET isn't granted.
				t.Errorf("finding %+v, want it ok", f)
			}
		}
	}
	for lacking, want := range map[string]struct {
		check string
		level store.Level
	}{
		"+zadd":             {store.CheckAppend, store.LevelFail},
		"+evalsha":          {store.CheckAppend, store.LevelFail},
		"+zrevrangebyscore": {store.CheckRead, store.LevelFail},
		"+zremrangebyrank":  {store.CheckTrim, store.LevelWarn},
		"+hset":             {store.CheckRoster, store.LevelWarn},
		"~{slotlease}:*":    {store.CheckAppend, store.LevelFail},
		"+info":             {store.CheckConnection, store.LevelFail},
	} {
		if !slices.Contains(grant, lacking) {
			t.Errorf("the documentation doesn't grant %s", lacking)
		}
		l := user(slices.DeleteFunc(slices.Clone(grant), func(r string) bool { return r == lacking })...)
		wantFinding(t, examined(t, l), want.check, want.level)
		if err := l.CheckRights(t.Context()); errors.Is(err, store.ErrDenied) != (want.level == store.LevelFail) {
			t.Errorf("CheckRights() without %s = %v, want it denied: %v", lacking, err, want.level == store.LevelFail)
		}
		if strings.Contains(strings.Join([]string{errText(l.CheckRights(t.Context())), errText(appendTo(t, l, 9)), l.String()}, " "), "s3cret") {
			t.Errorf("without %s the password shows", lacking)
		}
	}
	// Without the channel, nobody gets hints, and nothing else is missing.
	l = user(slices.DeleteFunc(slices.Clone(grant), func(r string) bool { return strings.HasPrefix(r, "&") })...)
	r := storetest.Grant("job", 3)
	r.Kind, r.WindowStart = store.KindRelease, r.WindowEnd
	must(t, "Append() of a release without a channel", l.Append(t.Context(), r))
	if err := l.Watch(t.Context(), func(string) {}); !errors.Is(err, store.ErrDenied) {
		t.Errorf("Watch() without a channel = %v, want ErrDenied", err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + store.Detail(err)
}
