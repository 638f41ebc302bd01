package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

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
