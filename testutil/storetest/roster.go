package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// rosterCases are for stores that keep a roster: what is attended comes back.
var rosterCases = []testCase{
	{"every field of a presence comes back", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		p := Presence("job", "a")
		for i, v := range reflect.ValueOf(p).Fields() {
			if v.IsZero() {
				t.Fatalf("the suite's own Presence has no %s: set it", i.Name)
			}
		}
		attend(t, r, p)
		wantPresences(t, "Presences(job)", presences(t, r, "job"), p)
		wantPresences(t, "Presences of all", presences(t, r, ""), p)
	}},
	{"a presence without what may be left out comes back as it is", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		least := store.Presence{WorkerType: "job", ID: "a", InstanceID: "w", Phase: store.PhaseCandidate}
		empty := least
		empty.ID, empty.Labels = "b", map[string]string{}
		attend(t, r, least, empty)
		wantPresences(t, "Presences(job)", presences(t, r, "job"), least, empty)
	}},
	{"a score of 0 is not none, and none is not 0", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		var want []store.Presence
		for i, score := range []*float64{nil, new(0.0), new(1.0), new(1.0 / 3), new(math.SmallestNonzeroFloat64), new(math.Nextafter(1, 0))} {
			p := Presence("job", fmt.Sprint(i))
			p.Score = score
			want = append(want, p)
		}
		attend(t, r, want...)
		wantPresences(t, "Presences(job)", presences(t, r, "job"), want...)
	}},
	{"the numbers of a presence come back, however large", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		const years = 365 * 24 * time.Hour
		large, small := Presence("job", "large"), Presence("job", "small")
		large.PID, large.Priority, large.Effective, large.Failures = math.MaxInt32, math.MaxInt32, math.MaxInt32, store.MaxFailures
		large.Offset, large.Uncertainty = 1<<53-1, 1<<53-1
		// A clock may have begun with 1970. Stores that keep floats have these whole years exactly.
		small.PID, small.Priority, small.Effective, small.Failures = -1, math.MinInt32, math.MinInt32, 0
		small.Offset, small.Uncertainty = -56*years, 200*years
		attend(t, r, large, small)
		wantPresences(t, "Presences(job)", presences(t, r, "job"), large, small)
	}},
	{"the times of a presence are cut to milliseconds, in UTC", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		var want []store.Presence
		for i, at := range []time.Time{
			time.Date(2026, time.March, 2, 1, 2, 3, 4_999_999, time.FixedZone("x", 5*3600)),
			time.Date(1969, time.December, 31, 23, 59, 59, 999_999_999, time.UTC),
			time.Unix(0, 0),
			time.Date(1, time.January, 1, 0, 0, 0, 1_000_000, time.UTC),
			time.Date(9999, time.December, 31, 23, 59, 59, 999_999_999, time.UTC),
			{},
		} {
			p := Presence("job", fmt.Sprint(i))
			p.MissedFrom, p.MissedUntil, p.FailedIn, p.StepsBackUntil, p.Since, p.Seen, p.Next = at, at, at, at, at, at, at
			want = append(want, p)
		}
		attend(t, r, want...)
		wantPresences(t, "Presences(job)", presences(t, r, "job"), want...)
	}},
	{"the texts of a presence are data, whatever they look like", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		var want []store.Presence
		for i, text := range hostileTexts {
			p := Presence("job", fmt.Sprint(i))
			p.InstanceID, p.Group, p.Host, p.Version, p.Schedule, p.Phase = text, text, text, text, text, store.Phase(text)
			p.Why, p.Ineligible, p.Missed = text, text, text
			p.Labels = map[string]string{text: text}
			want = append(want, p)
		}
		attend(t, r, want...)
		wantPresences(t, "Presences(job)", presences(t, r, "job"), want...)
	}},
	{"the names of labels are data, whatever they look like", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		p := Presence("job", "a")
		p.Labels = map[string]string{}
		for i, name := range hostileLabels {
			p.Labels[name] = []string{"", name, "$" + name}[i%3]
		}
		attend(t, r, p)
		wantPresences(t, "Presences(job)", presences(t, r, "job"), p)
	}},
	{"a presence as large as may be comes back", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		p := Presence("job", strings.Repeat("a", 64))
		p.WorkerType, p.Client = strings.Repeat("j", 63), strings.Repeat("c", 64)
		p.InstanceID, p.Group, p.Phase = strings.Repeat("\x01", 256), strings.Repeat("<", 256), store.Phase(strings.Repeat("\x02", 32))
		p.Why, p.Ineligible, p.Missed = strings.Repeat("\x7f", store.MaxReason), strings.Repeat("\x1f", store.MaxReason), strings.Repeat("🦫", store.MaxReason/4)
		p.Labels = map[string]string{}
		for i := range store.MaxLabels {
			p.Labels[strings.Repeat("\x01", 61)+fmt.Sprintf("%02d", i)] = strings.Repeat("\x1f", 256)
		}
		word := strings.Repeat("\x03", 32)
		p.Job = &store.JobTimes{StartWithin: store.MaxJobTime, Overrun: word, Timeout: store.MaxJobTime, CatchUp: word, CatchUpWithin: store.MaxJobTime}
		if err := p.Check(); err != nil {
			t.Fatalf("the suite's own presence = %v", err)
		}
		attend(t, r, p)
		wantPresences(t, "Presences", presences(t, r, p.WorkerType), p)
	}},
	{"a second Attend replaces the first, and keeps nothing of it", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		attend(t, r, Presence("job", "a"), Presence("job", "b"))
		next := store.Presence{WorkerType: "job", ID: "a", InstanceID: "w", Phase: store.PhaseHolder, Labels: map[string]string{"zone": "z"}}
		attend(t, r, next)
		wantPresences(t, "Presences(job)", presences(t, r, "job"), next, Presence("job", "b"))
		attend(t, r, Presence("job", "a"))
		wantPresences(t, "Presences(job)", presences(t, r, "job"), Presence("job", "a"), Presence("job", "b"))
	}},
	{"a key that is twice in a batch is there once", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		second := Presence("job", "a")
		second.InstanceID = "second"
		attend(t, r, Presence("job", "a"), second, Presence("job", "b"))
		got := presences(t, r, "job")
		if len(got) > 0 && got[0].InstanceID != second.InstanceID {
			second = Presence("job", "a")
		}
		wantPresences(t, "Presences(job)", got, second, Presence("job", "b"))
	}},
	{"Leave removes the presences that it names, and no others", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		attend(t, r, Presence("job", "a"), Presence("job", "a-b"), Presence("job", "b"), Presence("job", "c"), Presence("mail", "a"), Presence("mail", "b"))
		leave(t, r, "job", "b", "absent", "b", "A", "", "%", "c' OR '1'='1", `{"$ne":null}`, "\x00", "c\x00", "c\x00x", "\xff", strings.Repeat("c", 10<<10))
		rest := []store.Presence{Presence("job", "a"), Presence("job", "a-b"), Presence("job", "c"), Presence("mail", "a"), Presence("mail", "b")}
		wantPresences(t, "Presences after Leave(job, b)", presences(t, r, ""), rest...)
		leave(t, r, "job", "b")
		leave(t, r, "absent", "a", "b")
		for _, name := range hostileNames {
			if err := r.Leave(within(t), name, []string{"a", "b"}); err != nil && !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Leave(%.60q) = %v, want nil or ErrInvalid", name, err)
			}
		}
		wantPresences(t, "Presences after Leave of what isn't there", presences(t, r, ""), rest...)
		leave(t, r, "job", "a", "c")
		wantPresences(t, "Presences after Leave(job, a, c)", presences(t, r, ""), rest[1], rest[3], rest[4])
		attend(t, r, rest...)
		wantPresences(t, "Presences after Attend", presences(t, r, ""), rest...)
	}},
	{"worker types with kindred names keep presences apart", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		var all []store.Presence
		for _, name := range kindred {
			p := Presence(name, "x")
			p.InstanceID = name
			all = append(all, p)
		}
		attend(t, r, all...)
		for i, name := range kindred {
			wantPresences(t, fmt.Sprintf("Presences(%s)", name), presences(t, r, name), all[i])
		}
		for _, name := range append(hostileNames[1:], "B", "axB", "a-b-", "a.B") {
			if got, err := r.Presences(within(t), name); len(got) > 0 || err != nil && (store.CheckWorkerType(name) == nil || !errors.Is(err, store.ErrInvalid)) {
				t.Errorf("Presences(%.60q) = %q, %v, want none, and ErrInvalid for a hostile name at most", name, keysOf(got), err)
			}
		}
		for i, name := range kindred {
			leave(t, r, name, "x")
			wantPresences(t, fmt.Sprintf("Presences after Leave(%s)", name), presences(t, r, ""), all[i+1:]...)
		}
	}},
	{"presences are listed in the order of their keys", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		var all []store.Presence
		for _, name := range kindred {
			for _, id := range []string{"-", ".", "0", "10", "9", "a", "a-", "a-b", "a.", "a0", "aa", "b", strings.Repeat("a", 64)} {
				all = append(all, Presence(name, id))
			}
		}
		for at := 1; at < len(all); at += 2 { // in no order
			other := (at * 37) % len(all)
			all[at], all[other] = all[other], all[at]
		}
		for batch := range slices.Chunk(all, 20) {
			attend(t, r, batch...)
		}
		wantPresences(t, "Presences", presences(t, r, ""), all...)
		wantPresences(t, "Presences(a)", presences(t, r, "a"), slices.DeleteFunc(all, func(p store.Presence) bool { return p.WorkerType != "a" })...)
	}},
	{"an invalid presence is refused with ErrInvalid, and nothing of its batch is stored", invalidPresences},
	{"an empty batch is nothing", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		attend(t, r)
		leave(t, r, "job")
		wantPresences(t, "Presences", presences(t, r, ""))
		attend(t, r, Presence("job", "a"))
		attend(t, r, []store.Presence{}...)
		leave(t, r, "job", []string{}...)
		wantPresences(t, "Presences", presences(t, r, ""), Presence("job", "a"))
	}},
	{"a batch of 120 is stored and removed", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		var all []store.Presence
		var ids []string
		for i := range 120 {
			ids = append(ids, fmt.Sprintf("w%d", i))
			all = append(all, Presence([]string{"job", "job", "mail"}[i%3], ids[i]))
		}
		attend(t, r, all...)
		wantPresences(t, "Presences", presences(t, r, ""), all...)
		for i := range all {
			all[i].Seen = all[i].Next
		}
		attend(t, r, all...)
		wantPresences(t, "Presences after another Attend", presences(t, r, ""), all...)
		leave(t, r, "job", ids...)
		wantPresences(t, "Presences after Leave(job)", presences(t, r, ""),
			slices.DeleteFunc(slices.Clone(all), func(p store.Presence) bool { return p.WorkerType == "job" })...)
	}},
	{"what the caller changes afterwards isn't changed in the store", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		given := Presence("job", "a")
		batch := []store.Presence{given}
		attend(t, r, batch...)
		for range 2 {
			given.Labels["region"], *given.Score = "changed", 0
			batch[0].InstanceID = "changed"
			got := presences(t, r, "job")
			wantPresences(t, "Presences(job)", got, Presence("job", "a"))
			if len(got) == 1 {
				given = got[0]
			}
		}
	}},
}

// hostileTexts are texts that a store may take for more than that, of at most 32 bytes.
var hostileTexts = []string{
	`{"$gt":""}`, "$where", "$$NOW", "$a.b", "a.b.c", "' OR 1=1 --", "`\"'", `\`, `\u0000`, `\x00`, "{{.}}", "%s%n", "undefined", "null", "NaN", "-0", "true",
	" ", "\t\r\n", "\x01\x02\x1b[31m\x1f\x7f", "\u0085", "\u2028\u2029", "\u202ejob", "\ufeffbom", "\uffff", "jo\u0308b", "ﬁ", "🦫", "<script>&amp;", "2026-03-02T00:00:00Z",
}

// hostileLabels are names that a store may take for a path, an operator or a field of its own.
var hostileLabels = []string{
	"$", "$set", "$where", ".", "..", "a.b", "a.b.c", ".a", "a.", "a", "A", "_id", "id", "_ts", "_etag", "workerType", "seen", "__proto__", "constructor",
	"'", `"`, "`", `\`, "/", "?", " ", "\t\n", "\x01", "\u2028", "é", "🦫", strings.Repeat("n", 63),
}

func invalidPresences(t *testing.T, b *bench) {
	r := asRoster(t, b.Ledger)
	attend(t, r, Presence("job", "a"))
	bad := map[string]func(p *store.Presence){
		"without an id":            func(p *store.Presence) { p.ID = "" },
		"with an id of capitals":   func(p *store.Presence) { p.ID = "A" },
		"with a long id":           func(p *store.Presence) { p.ID = strings.Repeat("a", 65) },
		"with a hostile id":        func(p *store.Presence) { p.ID = `{"$gt":""}` },
		"with a hostile client":    func(p *store.Presence) { p.Client = "$client" },
		"without an instance":      func(p *store.Presence) { p.InstanceID = "" },
		"without a phase":          func(p *store.Presence) { p.Phase = "" },
		"with NUL":                 func(p *store.Presence) { p.Why = "a\x00b" },
		"with what isn't UTF-8":    func(p *store.Presence) { p.Missed = "\xff" },
		"with a long text":         func(p *store.Presence) { p.Ineligible = strings.Repeat("x", store.MaxReason+1) },
		"with a label of no name":  func(p *store.Presence) { p.Labels[""] = "x" },
		"with a label with NUL":    func(p *store.Presence) { p.Labels["a\x00b"] = "x" },
		"with a label not UTF-8":   func(p *store.Presence) { p.Labels["a"] = "\xff" },
		"with a score above 1":     func(p *store.Presence) { p.Score = new(1.5) },
		"with a score below 0":     func(p *store.Presence) { p.Score = new(-0.1) },
		"with a score of NaN":      func(p *store.Presence) { p.Score = new(math.NaN()) },
		"with an infinite score":   func(p *store.Presence) { p.Score = new(math.Inf(1)) },
		"with negative failures":   func(p *store.Presence) { p.Failures = -1 },
		"with too many failures":   func(p *store.Presence) { p.Failures = store.MaxFailures + 1 },
		"with the year 10000":      func(p *store.Presence) { p.Seen = time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC) },
		"with the year 0":          func(p *store.Presence) { p.Next = time.Date(0, time.December, 31, 0, 0, 0, 0, time.UTC) },
		"with more than 32 labels": func(p *store.Presence) { p.Labels = manyLabels(store.MaxLabels + 1) },
	}
	for _, name := range hostileNames {
		bad[fmt.Sprintf("under %.60q", name)] = func(p *store.Presence) { p.WorkerType = name }
	}
	for _, what := range slices.Sorted(maps.Keys(bad)) {
		p := Presence("job", "c")
		bad[what](&p)
		changed := Presence("job", "a")
		changed.InstanceID = "changed"
		err := r.Attend(within(t), []store.Presence{changed, Presence("job", "b"), p, Presence("job", "d")})
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Attend of a presence %s = %v, want ErrInvalid", what, err)
		} else if len(err.Error()) > 4<<10 {
			t.Errorf("Attend of a presence %s: the error has %d bytes, want the value not to be echoed whole", what, len(err.Error()))
		}
	}
	wantPresences(t, "Presences afterwards", presences(t, r, ""), Presence("job", "a"))
}

func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprint(i)] = "x"
	}
	return labels
}
