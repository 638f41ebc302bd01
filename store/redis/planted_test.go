package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// seqs are those of records; a record with a Defect is marked.
func seqs(records []store.Record) (all []string) {
	for _, r := range records {
		text := fmt.Sprint(r.Seq)
		if r.Defect != "" {
			text += "!"
		}
		all = append(all, text)
	}
	return all
}

// A sorted set takes any number as a score, and two members with one.
func TestScoresThatAreNoSeqArePassedOver(t *testing.T) {
	t.Parallel()
	uri := shared(t)
	l, c := open(t, uri), raw(t, uri)
	for seq := int64(1); seq <= 4; seq++ {
		must(t, "Append()", appendTo(t, l, seq))
	}
	want := func(what string, got []store.Record, err error, want ...string) {
		t.Helper()
		if err != nil || !slices.Equal(seqs(got), want) {
			t.Errorf("%s = %q, %v, want %q", what, seqs(got), err, want)
		}
	}
	tail := func(limit int) ([]store.Record, error) {
		records, _, err := l.Tail(t.Context(), "job", limit)
		return records, err
	}
	for _, score := range []string{"0", "-5", "-inf", "0.5"} {
		plant(t, l, c, "job", score, "low"+score)
	}
	got, err := tail(3)
	want("Tail() above what is below 1", got, err, "4", "3", "2")
	plant(t, l, c, "job", "3.5", "between")
	got, err = tail(3)
	want("Tail() around a fraction", got, err, "0!", "4", "3", "2")
	if !strings.Contains(got[0].Defect, "3.5") {
		t.Errorf("Defect %q, want the score", got[0].Defect)
	}
	got, err = l.Page(t.Context(), "job", 2, 9)
	want("Page() around a fraction", got, err, "3", "4")
	for _, score := range []string{"9007199254740991", "9007199254740992", "1e300", "+inf"} {
		plant(t, l, c, "job", score, "high"+score)
		got, err = tail(1)
		want("Tail() below "+score, got, err, "0!", "4")
	}
	// A trim leaves the newest that is one, and what isn't.
	if n, err := l.Trim(t.Context(), "job", store.MaxSeq); err != nil {
		t.Errorf("Trim() = %d, %v, want nil", n, err)
	}
	got, err = tail(9)
	want("Tail() after a trim", got, err, "0!", "4")
	must(t, "Append()", appendTo(t, l, 5))

	plant(t, l, c, "twins", "1", "{}")
	for seq := int64(2); seq <= 3; seq++ {
		r := storetest.Grant("twins", seq)
		must(t, "Append()", l.Append(t.Context(), r))
	}
	for _, member := range []string{"!", "~"} { // which sort before and after the document
		plant(t, l, c, "twins", "2", member)
		for limit, seqs := range map[int][]string{1: {"3"}, 2: {"3", "2!"}, 3: {"3", "2!", "1!"}} {
			got, _, err := l.Tail(t.Context(), "twins", limit)
			want(fmt.Sprintf("Tail(%d) of twins", limit), got, err, seqs...)
		}
		one, err := l.Get(t.Context(), "twins", 2)
		want("Get() of twins", []store.Record{one}, err, "2!")
		got, err = l.Page(t.Context(), "twins", 1, 1)
		want("Page(1) of twins", got, err, "2!")
		got, err = l.Page(t.Context(), "twins", 0, 9)
		want("Page(9) of twins", got, err, "1!", "2!", "3")
	}
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("twins", 4)))
}

// Another program may store what no record can be, and as much of it as there is memory.
func TestHugeDocumentsKeepNobodyFromReading(t *testing.T) {
	t.Parallel()
	uri := shared(t)
	l, c := open(t, uri), raw(t, uri)
	must(t, "Append()", appendTo(t, l, 1))
	for n := range 20 {
		plant(t, l, c, "job", fmt.Sprint(2+n), fmt.Sprint(n, strings.Repeat("x", 1<<20)))
	}
	plant(t, l, c, "job", "22", strings.Repeat("x", 24<<20))
	must(t, "Append()", appendTo(t, l, 23))
	got, _, err := l.Tail(t.Context(), "job", 30)
	if err != nil || len(got) != 23 || got[0].Defect != "" || got[22].Defect != "" || got[1].Defect == "" {
		t.Errorf("Tail() = %d records, %v, want 23, of which the first and the last can be read", len(got), err)
	}
	var paged []store.Record
	for after := int64(0); ; {
		page, err := l.Page(t.Context(), "job", after, 100)
		must(t, "Page()", err)
		if len(page) == 0 {
			break
		}
		if len(page) == 23 {
			t.Error("Page() read 44 MB at once, want less")
		}
		paged, after = append(paged, page...), page[len(page)-1].Seq
	}
	slices.Reverse(paged)
	if !slices.Equal(seqs(paged), seqs(got)) {
		t.Errorf("pages have %q, the tail %q", seqs(paged), seqs(got))
	}
	// One that no reply has room for is named.
	plant(t, l, c, "job", "24", strings.Repeat("x", mostReply))
	if _, _, err := l.Tail(t.Context(), "job", 3); err == nil || !strings.Contains(err.Error(), l.names.ledger("job")+": the reply is larger") {
		t.Errorf("Tail() of what can't be read = %v, want an error that names the key", err)
	}
}

// If a process keeps its id and its history, but its offset is lower than before, its machine was restored from a snapshot.
func TestAServerThatIsBehindItsOwnOffsetHasAnotherHistory(t *testing.T) {
	t.Parallel()
	var n line
	at := time.Unix(1_700_000_000, 0)
	for i, c := range []struct {
		replid string
		offset int64
		want   string
	}{{"a", 0, "a"}, {"a", 50, "a"}, {"a", 90, "a"}, {"a", 60, "a, back at 60.0"}, {"a", 70, "a, back at 60.0"}, {"b", 5, "b"}, {"b", 9, "b"}} {
		process := map[string]string{"a": "first", "b": "second"}[c.replid]
		at = at.Add(2 * time.Second)
		if got := n.follow(server{process: process, history: c.replid, offset: c.offset}, at, at.Add(time.Second)); got != c.want {
			t.Errorf("reply %d: follow(%s, %d) = %q, want %q", i, c.replid, c.offset, got, c.want)
		}
	}
}

// Other products speak Redis' language, too, with accents.
func TestOddRepliesAreErrors(t *testing.T) {
	t.Parallel()
	l := open(t, "redis://127.0.0.1/0")
	reply := func(value any, err error) *goredis.Cmd {
		c := goredis.NewCmd(t.Context())
		c.SetVal(value)
		c.SetErr(err)
		return c
	}
	const primary = "role:master\r\nserver_time_usec:"
	for _, odd := range []any{nil, "role:master", primary, primary + "x", primary + "99999999999999999999", "role:slave\r\nserver_time_usec:5"} {
		if s, err := l.identify(&link{addr: "here"}, reply(odd, nil), time.Time{}); err == nil {
			t.Errorf("identify(%q) = %+v, want an error", odd, s)
		}
	}
	if s, err := l.identify(&link{}, reply(primary+"1700000000000005", nil), time.Time{}); err != nil || !s.Time.Equal(time.UnixMicro(1_700_000_000_000_005)) {
		t.Errorf("identify() = %+v, %v, want 5 µs after a second", s, err)
	}
	for _, odd := range []any{nil, int64(1), []any{}, []any{"stored"}, "odd", ""} {
		if err := l.appended("job", nil, []*goredis.Cmd{reply(odd, nil)}); err == nil || errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrConflict) {
			t.Errorf("appended(%v) = %v, want an unknown outcome", odd, err)
		}
	}
	waiting := open(t, "redis://127.0.0.1/0?replicas=2")
	for _, odd := range []*goredis.Cmd{reply(int64(1), nil), reply("x", nil), reply(nil, nil), reply(nil, replied("NOPERM no")), reply(int64(2), replied("READONLY no"))} {
		err := waiting.waited([]*goredis.Cmd{odd})
		if err == nil || meaning(err).NotStored || meaning(err).Is != nil {
			t.Errorf("waited(%v) = %v, want an unknown outcome", odd, err)
		}
	}
	must(t, "waited()", waiting.waited([]*goredis.Cmd{reply(int64(2), nil)}))
}

// Whoever looks needs no right to write.
func TestAUserWithoutTheRightToWriteReads(t *testing.T) {
	t.Parallel()
	s := redispeer.Start(t, redispeer.Options{})
	must(t, "Append()", appendTo(t, open(t, s.URI()), 1))
	admin := raw(t, s.URI())
	args := []any{"ACL", "SETUSER", "looker", "on", ">s3cret-pass"}
	for _, r := range documentedRights(t) {
		if !slices.Contains([]string{"+zadd", "+zremrangebyrank", "+hset", "+hdel", "+publish"}, r) {
			args = append(args, r)
		}
	}
	do(t, admin, args...)
	uri := strings.Replace(s.URI(), "redis://", "redis://looker:s3cret-pass@", 1)
	for _, readOnly := range []bool{true, false} {
		l := openWith(t, Options{URI: uri, ReadOnly: readOnly})
		if _, err := l.Get(t.Context(), "job", 1); err != nil {
			t.Errorf("Get() = %v, want nil", err)
		}
		for _, name := range []string{"Tail", "Page", "WorkerTypes", "Now", "Init", "Presences"} {
			must(t, name, operations[name](t.Context(), l))
		}
		for _, name := range []string{"Append", "Trim", "Attend", "Leave", "CheckRights"} {
			if err := operations[name](t.Context(), l); !errors.Is(err, store.ErrDenied) && (name != "Trim" || readOnly) {
				t.Errorf("%s by a user without the right = %v, want ErrDenied", name, err)
			}
		}
		by := examined(t, l)
		wantFinding(t, by, store.CheckRead, store.LevelOK)
		wantFinding(t, by, store.CheckAppend, store.LevelFail, "ACL SETUSER", "+zadd")
	}
}
