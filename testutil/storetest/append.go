package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

var appendCases = []testCase{
	{"a retry of the very same record is refused with ErrConflict", func(t *testing.T, b *bench) {
		r := claimed("job", 1, "first")
		add(t, b, r)
		wantConflict(t, b, r)
		wantConflict(t, b.handle(t), r)
		wantRecord(t, "Get(job, 1) after the retries", get(t, b, "job", 1), r)
	}},
	{"a conflict leaves the first record unchanged", func(t *testing.T, b *bench) {
		first := claimed("job", 1, "first")
		add(t, b, first)
		second := claimed("job", 1, "second")
		second.Token++
		second.Group = "other"
		second.Metadata = "other"
		second.WindowEnd = second.WindowEnd.Add(time.Hour)
		wantConflict(t, b, second)
		wantRecord(t, "Get(job, 1) after a conflict", get(t, b, "job", 1), first)
		wantSeqs(t, "Tail(job) after a conflict", tail(t, b, "job", 9), 1)
	}},
	{"a conflict below the head is one, too", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 3)
		wantConflict(t, b, claimed("job", 2, "late"))
		wantRecord(t, "Get(job, 2)", get(t, b, "job", 2), Grant("job", 2))
	}},
	{"handles see each other's appends at once", func(t *testing.T, b *bench) {
		handles := []store.Ledger{b, b.handle(t), b.handle(t)}
		for seq := int64(1); seq <= 6; seq++ {
			writer := handles[seq%3]
			add(t, writer, Grant("job", seq))
			for i, l := range handles {
				wantRecord(t, fmt.Sprintf("Get(job, %d) by handle %d", seq, i), get(t, l, "job", seq), Grant("job", seq))
				wantSeqs(t, fmt.Sprintf("Tail(job, 1) by handle %d", i), tail(t, l, "job", 1), seq)
			}
			wantConflict(t, handles[(seq+1)%3], claimed("job", seq, "late"))
		}
	}},
	{"an absent key is ErrNotFound", func(t *testing.T, b *bench) {
		absent(t, b, "job", 1)
		addRange(t, b, "job", 1, 2)
		absent(t, b, "job", 3)
		absent(t, b, "other", 1)
		absent(t, b, "job", store.MaxSeq)
	}},
	{"a Seq is free in every worker type", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1), Grant("job2", 1), Grant("JOB", 1))
		wantRecord(t, "Get(job2, 1)", get(t, b, "job2", 1), Grant("job2", 1))
		wantRecord(t, "Get(JOB, 1)", get(t, b, "JOB", 1), Grant("JOB", 1))
	}},
	{"a Seq may skip others and reach MaxSeq", func(t *testing.T, b *bench) {
		seqs := []int64{1, 2, 9, 10, 1_000_000, 1 << 40, store.MaxSeq - 1, store.MaxSeq}
		for _, seq := range seqs {
			add(t, b, Grant("job", seq))
			wantSeqs(t, "Tail(job, 1)", tail(t, b, "job", 1), seq)
		}
		for _, seq := range seqs {
			wantRecord(t, fmt.Sprintf("Get(job, %d)", seq), get(t, b, "job", seq), Grant("job", seq))
		}
		absent(t, b, "job", 3)
		wantConflict(t, b, claimed("job", store.MaxSeq, "late"))
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 99), store.MaxSeq, store.MaxSeq-1, 1<<40, 1_000_000, 10, 9, 2, 1)
	}},
	{"a record that breaks a rule is refused with ErrInvalid and not stored", appendInvalid},
}

// wantConflict demands that an append finds its key taken.
func wantConflict(t *testing.T, l store.Ledger, r store.Record) {
	t.Helper()
	if err := l.Append(within(t), r); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Append(%s) = %v, want ErrConflict: the key is taken", store.Key(r.WorkerType, r.Seq), err)
	}
}

func appendInvalid(t *testing.T, b *bench) {
	for name, spoil := range map[string]func(r *store.Record){
		"seq 0":            func(r *store.Record) { r.Seq = 0 },
		"seq below 0":      func(r *store.Record) { r.Seq = -1 },
		"seq over MaxSeq":  func(r *store.Record) { r.Seq = store.MaxSeq + 1 },
		"no kind":          func(r *store.Record) { r.Kind = "" },
		"no claim":         func(r *store.Record) { r.Claim = "" },
		"no instance":      func(r *store.Record) { r.InstanceID = "" },
		"token 0":          func(r *store.Record) { r.Token = 0 },
		"no window":        func(r *store.Record) { r.WindowStart, r.WindowEnd = time.Time{}, time.Time{} },
		"empty grant":      func(r *store.Record) { r.WindowEnd = r.WindowStart },
		"reversed window":  func(r *store.Record) { r.WindowEnd = r.WindowStart.Add(-time.Minute) },
		"NUL in metadata":  func(r *store.Record) { r.Metadata = "a\x00b" },
		"NUL in claim":     func(r *store.Record) { r.Claim = "a\x00b" },
		"claim not UTF-8":  func(r *store.Record) { r.Claim = "a\xff" },
		"large metadata":   func(r *store.Record) { r.Metadata = strings.Repeat("m", store.MaxMetadata+1) },
		"orders":           func(r *store.Record) { r.Orders = "pause" },
		"done":             func(r *store.Record) { r.Done = "yesterday" },
		"defect":           func(r *store.Record) { r.Defect = "can't be decoded" },
		"long group":       func(r *store.Record) { r.Group = strings.Repeat("g", 10<<10) },
		"long instance id": func(r *store.Record) { r.InstanceID = strings.Repeat("i", 10<<10) },
	} {
		r := Grant("job", 1)
		spoil(&r)
		if err := b.Append(within(t), r); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Append(%s) = %v, want ErrInvalid", name, err)
		}
	}
	if got := tail(t, b, "job", 9); len(got) != 0 {
		t.Errorf("Tail(job) after refused appends = %+v, want none", got)
	}
	add(t, b, Grant("job", 1))
}

// hostileNames are worker types that the rules forbid: queries in disguise,
// separators of keys and paths, look-alikes, and plain nonsense.
var hostileNames = []string{
	"", " ", "job ", " job", ".", "..", "-job", "_job", ".job",
	`{"$gt":""}`, `{"$ne":null}`, `{"$regex":".*"}`, "$where", "$gt", "job.$where",
	"' OR '1'='1", `job'; DROP TABLE records; --`, `" OR "1"="1`, "job' --", "@t", "?", "job%", "%", "j_b%", "*", "job*",
	"job:", "job:00000000000000000001", ":", "job/1", `job\1`, "../job", "job?x#y", "dbs/a/colls/b",
	"job\x00", "\x00", "job\x00x", "job\n", "job\r\n", "\tjob", "job\x7f", "job\u2028", "\u202ejob",
	"jоb", "ｊob", "job\u200b", "jo\u0308b", "ﬁ", "\xff", "job\xc0\x80",
	strings.Repeat("j", 64), strings.Repeat("job", 10<<10/3), strings.Repeat("é", 5<<10),
}

var nameCases = []testCase{
	{"an append under a hostile name is refused with ErrInvalid and stores nothing", func(t *testing.T, b *bench) {
		for _, name := range hostileNames {
			err := b.Append(within(t), Grant(name, 1))
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Append under %.60q = %v, want ErrInvalid", name, err)
			} else if len(err.Error()) > 2<<10 {
				t.Errorf("Append under %.60q: the error has %d bytes, want a name of %d bytes not to be echoed whole", name, len(err.Error()), len(name))
			}
		}
		wantTypes(t, b)
	}},
	{"reading or trimming under a hostile name matches nothing and breaks nothing", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 3)
		addRange(t, b, "j", 1, 3)
		for _, name := range hostileNames {
			r, err := b.Get(within(t), name, 1)
			if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Get(%.60q, 1) = %+v, %v, want ErrNotFound or ErrInvalid", name, r, err)
			}
			records, _, err := b.Tail(within(t), name, 9)
			if len(records) > 0 || err != nil && !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Tail(%.60q, 9) = %d records, %v, want none, and no error but ErrInvalid", name, len(records), err)
			}
			n, err := b.Trim(within(t), name, store.MaxSeq)
			if n != 0 || err != nil && !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Trim(%.60q, MaxSeq) = %d, %v, want 0, and no error but ErrInvalid", name, n, err)
			}
		}
		wantSeqs(t, "Tail(job) afterwards", tail(t, b, "job", 9), 3, 2, 1)
		wantSeqs(t, "Tail(j) afterwards", tail(t, b, "j", 9), 3, 2, 1)
		wantTypes(t, b, "j", "job")
		add(t, b, Grant("job", 4))
	}},
	{"reading a Seq that can't be is ErrNotFound or ErrInvalid", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 2)
		for _, seq := range []int64{0, -1, -1 << 63, store.MaxSeq + 1, 1<<63 - 1} {
			r, err := b.Get(within(t), "job", seq)
			if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Get(job, %d) = %+v, %v, want ErrNotFound or ErrInvalid", seq, r, err)
			}
		}
	}},
	{"the values of a record are data, whatever they look like", func(t *testing.T, b *bench) {
		for i, text := range []string{`{"$gt":""}`, "$where", "$$NOW", "' OR 1=1 --", "{{.}}", "%s%n", "undefined", "NaN", "-0"} {
			r := Grant("job", int64(i+1))
			r.InstanceID, r.Group, r.Claim, r.Metadata, r.Schedule = text, text, text, text, text
			r.Kind = store.Kind(text)
			r.Worker.Host, r.Worker.Version = text, text
			add(t, b, r)
			wantRecord(t, fmt.Sprintf("Get of a record full of %q", text), get(t, b, "job", r.Seq), r)
		}
	}},
}
