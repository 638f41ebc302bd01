package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
	plant(t, l, c, "job", "22", strings.Repeat("x", 9<<20))
	must(t, "Append()", appendTo(t, l, 23))
	got, _, err := l.Tail(t.Context(), "job", 30)
	if err != nil || len(got) != 23 || got[0].Defect != "" || got[22].Defect != "" || !strings.Contains(got[1].Defect, "far larger") {
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
			t.Error("Page() read 29 MB at once, want less")
		}
		paged, after = append(paged, page...), page[len(page)-1].Seq
	}
	slices.Reverse(paged)
	if !slices.Equal(seqs(paged), seqs(got)) {
		t.Errorf("pages have %q, the tail %q", seqs(paged), seqs(got))
	}
}

// Other products speak Redis' language, too, with accents.
func TestOddRepliesAreErrors(t *testing.T) {
	t.Parallel()
	rows := func(change func(v []any)) []any {
		v := []any{"1700000000", "5", int64(-1), "", int64(0), int64(1), []any{"7", "{}"}}
		change(v)
		return v
	}
	if p, err := readPart(rows(func([]any) {})); err != nil || !slices.Equal(p.scores, []string{"7"}) || !slices.Equal(p.documents, []string{"{}"}) {
		t.Errorf("readPart() of a sound reply = %+v, %v", p, err)
	}
	for i, odd := range []any{nil, nil, "x", int64(0), "x", nil, []any{"7"}} {
		if odd == nil && i < 2 {
			continue // stamp reads these
		}
		if p, err := readPart(rows(func(v []any) { v[i] = odd })); err == nil {
			t.Errorf("readPart() with %v in place %d = %+v, want an error", odd, i, p)
		}
	}
	for _, odd := range [][]any{nil, {"1"}, rows(func(v []any) { v[6] = []any{}; v[4] = int64(1) }), rows(func(v []any) { v[6] = []any{int64(7), "{}"} })} {
		if p, err := readPart(odd); err == nil {
			t.Errorf("readPart(%v) = %+v, want an error", odd, p)
		}
	}
	l := open(t, "redis://127.0.0.1/0")
	k := &link{addr: "here"}
	for _, odd := range [][2]any{{nil, nil}, {"x", "5"}, {"1700000000", ""}, {"1700000000", "x"}, {"99999999999999999999", "0"}} {
		if s, err := l.stamp(k, odd[0], odd[1]); err == nil {
			t.Errorf("stamp(%v) = %+v, want an error", odd, s)
		}
	}
	for _, odd := range []any{nil, int64(1), []any{}, []any{"stored"}, []any{"stored", "1700000000"}, []any{"stored", "x", "y"}, []any{"odd", "1700000000", "5"}} {
		if _, err := l.appended(k, "job", []reply{{odd, nil}}); err == nil || errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrConflict) {
			t.Errorf("appended(%v) = %v, want an unknown outcome", odd, err)
		}
	}
	waiting := open(t, "redis://127.0.0.1/0?replicas=2")
	for _, odd := range []reply{{int64(1), nil}, {"2", nil}, {nil, nil}, {nil, replied("NOPERM no")}, {int64(2), replied("READONLY no")}} {
		err := waiting.waited([]reply{odd})
		if err == nil || meaning(err).NotStored || meaning(err).Is != nil {
			t.Errorf("waited(%v) = %v, want an unknown outcome", odd, err)
		}
	}
	must(t, "waited()", waiting.waited([]reply{{int64(2), nil}}))
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
