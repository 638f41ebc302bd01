package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// asking is a connection that reports what is sent.
type asking struct {
	net.Conn

	sends func(b []byte)
}

func (c asking) Write(b []byte) (int, error) {
	c.sends(b)
	return c.Conn.Write(b)
}

// It isn't parallel: it measures the memory of the process.
func TestOfARosterThatNoReplyHoldsOnlyPresencesAreKept(t *testing.T) {
	uri := shared(t)
	a, err := parseURI(uri)
	must(t, "parseURI()", err)
	var held []uint64 // at the request for each piece
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return asking{conn, func(b []byte) {
			if bytes.Contains(b, []byte("HMGET")) {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				held = append(held, m.HeapAlloc)
			}
		}}, err
	}
	l := openWith(t, Options{Client: lent(t, &goredis.Options{Addr: a.hosts[0], Dialer: dial}), Prefix: a.prefix, UnsafeNoPersistence: true})
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{storetest.Presence("job", "a")}))
	admin, text := raw(t, uri), strings.Repeat("x", 100<<10)
	for i := range 1000 {
		do(t, admin, "HSET", l.names.roster("job"), fmt.Sprint("foreign-", i), text)
	}
	for _, workerType := range []string{"job", ""} {
		held = nil
		all, err := l.Presences(t.Context(), workerType)
		must(t, "Presences()", err)
		documenttest.Equal(t, "presences", len(all), 1)
		if len(held) < 4 {
			t.Fatalf("Presences() has asked for %d pieces: the test shows nothing", len(held))
		}
		if most := slices.Max(held); most > held[0]+mostReply {
			t.Errorf("Presences() holds %d MiB more than at the first of %d pieces, want less than one piece", (most-held[0])>>20, len(held))
		}
	}
	do(t, admin, "DEL", l.names.roster("job"))
}

// wantLeftOut demands that a spoiled roster is missing in the list of all, and is named with what to do.
func wantLeftOut(t *testing.T, l *Ledger, what string, want ...string) {
	t.Helper()
	all, err := l.Presences(t.Context(), "")
	must(t, "Presences() of all beside "+what, err)
	if len(all) != 2 || all[0].WorkerType != "first" || all[1].WorkerType != "third" {
		t.Errorf("Presences() of all beside %s = %+v, want those of first and third", what, all)
	}
	_, err = l.Presences(t.Context(), "second")
	for _, part := range append(want, l.names.roster("second"), "DEL "+l.names.roster("second")) {
		if w := l.Warning(); !strings.Contains(w, part) {
			t.Errorf("Warning() beside %s = %q, want it with %q", what, w, part)
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Presences() of %s = %v, want an error with %q", what, err, part)
		}
	}
}

// three makes a roster for each of three worker types.
func three(t *testing.T, l *Ledger) {
	t.Helper()
	must(t, "Attend()", l.Attend(t.Context(), []store.Presence{
		storetest.Presence("first", "a"), storetest.Presence("second", "a"), storetest.Presence("third", "a"),
	}))
}

func TestASpoiledRosterHidesNoOther(t *testing.T) {
	t.Parallel()
	uri := shared(t)
	l, admin := open(t, uri), raw(t, uri)
	key := l.names.roster("second")
	for what, spoil := range map[string]func(){
		"names that no reply holds": func() {
			for i := range 5 {
				do(t, admin, "HSET", key, fmt.Sprint(i, strings.Repeat("x", mostReply/4)), "")
			}
		},
		"more fields than workers": func() {
			const fields, each = mostIDs + 1, 5000 // A script that is slow on a busy machine would hold up the other tests' server.
			for n := 0; n < fields; n += each {
				do(t, admin, "EVAL", `local x = string.rep("x", ARGV[3]); for i = ARGV[1], ARGV[2] do redis.call("HSET", KEYS[1], "f" .. i, x) end`, 1, key, n, n+each, 2*mostReply/fields)
			}
		},
		"a value of another type": func() {
			do(t, admin, "DEL", key)
			do(t, admin, "SET", key, "mine")
		},
	} {
		three(t, l)
		spoil()
		wantLeftOut(t, l, what, "another program")
		do(t, admin, "DEL", key)
		three(t, l)
		all, err := l.Presences(t.Context(), "")
		must(t, "Presences()", err)
		documenttest.Equal(t, "presences after the DEL", len(all), 3)
		if w := l.Warning(); strings.Contains(w, key) {
			t.Errorf("Warning() after the DEL = %q, want it without %s", w, key)
		}
	}
}

// The index of all rosters isn't another ledger's: no other prefix is to be used.
func TestAnIndexOfRostersThatIsOverwrittenIsNamed(t *testing.T) {
	t.Parallel()
	uri := shared(t)
	l, admin := open(t, uri), raw(t, uri)
	three(t, l)
	do(t, admin, "DEL", l.names.rosters())
	do(t, admin, "SET", l.names.rosters(), "mine")
	_, err := l.Presences(t.Context(), "")
	if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "DEL "+l.names.rosters()) {
		t.Errorf("Presences() = %v, want the key, and how to remove it", err)
	}
	if err := l.Attend(t.Context(), []store.Presence{storetest.Presence("first", "a")}); err == nil || !strings.Contains(err.Error(), "DEL "+l.names.rosters()) {
		t.Errorf("Attend() = %v, want the key, and how to remove it", err)
	}
	found, err := l.Examine(t.Context())
	must(t, "Examine()", err)
	i := slices.IndexFunc(found, func(f store.Finding) bool { return f.Check == store.CheckConstraints })
	if f := found[i]; f.Level != store.LevelWarn || !strings.Contains(f.Text, l.names.rosters()+" is a string") || !strings.Contains(f.Remedy, "DEL") {
		t.Errorf("Examine() finds %+v, want a warning: no lease depends on it", f)
	}
	do(t, admin, "DEL", l.names.rosters())
}

// Whoever reads all ledgers learns of one that another program has overwritten: it is listed, and reading it fails.
func TestALedgerThatIsOverwrittenIsListed(t *testing.T) {
	t.Parallel()
	uri := shared(t)
	l, admin := open(t, uri), raw(t, uri)
	for _, name := range []string{"first", "second"} {
		must(t, "Append()", l.Append(t.Context(), storetest.Grant(name, 1)))
	}
	do(t, admin, "DEL", l.names.ledger("second"))
	do(t, admin, "SET", l.names.ledger("second"), "mine")
	types, err := l.WorkerTypes(t.Context())
	must(t, "WorkerTypes()", err)
	documenttest.Equal(t, "worker types", fmt.Sprint(types), "[first second]")
	_, _, err = l.Tail(t.Context(), "second", 1)
	documenttest.Says(t, "Tail() of the one", err, store.ErrRefused, "another program has overwritten a key")
}

// A user may have the rights of before rosters were read in parts.
func TestARosterThatMayNotBeReadInPartsHidesNoOther(t *testing.T) {
	t.Parallel()
	uri := shared(t)
	owner, admin := open(t, uri), raw(t, uri)
	key := owner.names.roster("second")
	three(t, owner)
	for i := range 5 {
		do(t, admin, "HSET", key, fmt.Sprint("foreign-", i), strings.Repeat("x", mostReply/4))
	}
	const tooMuch, rights = "larger than any of a ledger (32 MiB)", "+hkeys +hstrlen +hmget"
	for _, lacking := range []string{"hkeys", "hstrlen", "hmget"} {
		user := strings.ReplaceAll(prefix(), "-", "")
		do(t, admin, "ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all", "-"+lacking)
		l := openWith(t, Options{URI: uri, Username: user, Password: "secret"})
		if lacking == "hkeys" {
			wantLeftOut(t, l, "a roster that may not be read in parts", tooMuch, rights)
			continue
		}
		if _, err := l.Presences(t.Context(), "second"); err == nil || !strings.Contains(err.Error(), tooMuch) || !strings.Contains(err.Error(), rights) {
			t.Errorf("Presences() without %s = %v, want an error with %q and %q", lacking, err, tooMuch, rights)
		}
	}
	must(t, "Presences() with all rights", func() error { _, err := owner.Presences(t.Context(), "second"); return err }())
	do(t, admin, "DEL", key)
}

// A node of a cluster sends to another one, which is down.
func TestAfterAnErrorThereAreNoReplies(t *testing.T) {
	t.Parallel()
	first, second := cluster(t, 16382)
	a, b := raw(t, first.URI()), raw(t, second.URI())
	l := open(t, first.URI())
	_, err := l.Now(t.Context())
	must(t, "Now()", err)
	slot, err := a.ClusterKeySlot(t.Context(), l.names.types()).Result()
	must(t, "CLUSTER KEYSLOT", err)
	heir := do(t, b, "CLUSTER", "MYID")
	for _, c := range []*goredis.Client{b, a} {
		do(t, c, "CLUSTER", "SETSLOT", slot, "NODE", heir)
	}
	second.Kill()
	replies, stamp, err := l.exchange(t.Context(), command{"EXISTS", l.names.types()})
	if err == nil || !strings.Contains(err.Error(), second.Addr()) {
		t.Fatalf("exchange() = %v, want that %s can't be reached: the test shows nothing", err, second.Addr())
	}
	if replies != nil || !stamp.IsZero() {
		t.Errorf("exchange() = %v, %+v, want nothing beside the error %v", replies, stamp, err)
	}
}
