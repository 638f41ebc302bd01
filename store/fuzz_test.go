package store_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slotlease/slotlease/store"
)

// workerTypes is the rule for worker types in the plainest form.
var workerTypes = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// wantShown demands that a text can be shown on a terminal: lines of printable
// characters.
func wantShown(t *testing.T, what, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(text) {
		t.Errorf("%s = %q, want printable characters alone", what, text)
	}
}

func FuzzWorkerType(f *testing.F) {
	for _, s := range []string{
		"", "a", "Invoice-Export_2.eu", ".a", "-a", "a/b", "a:1", "$where", `{"$gt":""}`, "a\x00", "a\xff", "jоb", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 63) + "\n",
		"7", "my job", `a\b`, "a?b", "a#b", "jｏb", "cafe\u0301", "a\u200bb", "a\u202eb", "a\n", "a\x1b[31m", strings.Repeat("a", 10_000), strings.Repeat("a", 10_000) + "/", strings.Repeat("\u202e", 5_000),
	} {
		f.Add(s, "job", uint64(7))
	}
	f.Fuzz(func(t *testing.T, name, other string, n uint64) {
		err := store.CheckWorkerType(name)
		if got, want := err == nil, workerTypes.MatchString(name); got != want {
			t.Fatalf("CheckWorkerType(%q) = %v, want it valid: %v", name, err, want)
		}
		if err != nil {
			if !errors.Is(err, store.ErrInvalid) || len(err.Error()) > 700 {
				t.Fatalf("CheckWorkerType(%.80q) = %v, want a short ErrInvalid", name, err)
			}
			wantShown(t, "CheckWorkerType()", err.Error())
			if want := offence(name); !strings.Contains(err.Error(), want) {
				t.Fatalf("CheckWorkerType(%.80q) = %v, want it to name %q", name, err, want)
			}
			return
		}
		seq := int64(n%store.MaxSeq) + 1
		key := store.Key(name, seq)
		if next := store.Key(name, seq+1); key >= next || len(key) != len(next) {
			t.Fatalf("Key(%q, %d) = %q, want it before %q and of the same length", name, seq, key, next)
		}
		if store.CheckWorkerType(other) == nil && other != name && strings.HasPrefix(key, other+":") {
			t.Fatalf("Key(%q, %d) = %q, want it not among the keys of %q", name, seq, key, other)
		}
	})
}

// offence is what the error of a bad worker type must name.
func offence(name string) string {
	for i, r := range name {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r) || i == 0 && strings.ContainsRune("._-", r) {
			return fmt.Sprintf("character %q at position %d", r, i+1)
		}
	}
	if name == "" {
		return "empty"
	}
	return fmt.Sprintf("%d bytes", len(name))
}

// envelope is a record without what is for information.
func envelope(r store.Record) store.Record {
	r.Priority, r.SlotStart, r.SlotEnd, r.FixedAt = 0, time.Time{}, time.Time{}, time.Time{}
	r.Schedule, r.Worker, r.Metadata = "", store.Worker{}, ""
	r.DoneUntil, r.Attempt, r.Orders, r.Done = time.Time{}, 0, "", ""
	return r
}

// fits reports whether a text may be stored.
func fits(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

// dated reports whether all times have a form everywhere.
func dated(times ...time.Time) bool {
	first, end := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, t := range times {
		if t.Before(first) || !t.Before(end) {
			return false
		}
	}
	return true
}

// obeyed is the rule for envelopes, said once more.
func obeyed(r store.Record) bool {
	if !dated(r.WindowStart, r.WindowEnd, r.ReadAt) {
		return false
	}
	r = r.Truncated()
	return r.Defect == "" && workerTypes.MatchString(r.WorkerType) && r.Seq > 0 && r.Seq < 1<<53-1 && r.Token > 0 &&
		fits(string(r.Kind), 1, 32) && fits(r.Claim, 1, 64) && fits(r.InstanceID, 1, 256) && fits(r.Group, 0, 256) &&
		!r.WindowStart.IsZero() && !r.WindowEnd.IsZero() && !r.WindowEnd.Before(r.WindowStart) &&
		(r.Kind != store.KindGrant || r.WindowEnd != r.WindowStart)
}

func FuzzRecord(f *testing.F) {
	const grants = "grant\njob\nclaim\nworker\n\nevery 5m\nnote\nhost\nv1\n"
	f.Add(grants, uint16(0), int64(7), int64(1_700_000_000_000), int64(1_700_000_000_000), int64(300_000), int64(-9000), int64(5))
	f.Add(grants, uint16(1), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0))
	f.Add(grants, uint16(2), int64(store.MaxSeq+1), int64(-1), int64(1<<62), int64(-1<<62), int64(1<<61), int64(999_999))
	f.Add("release\njob\nc\ni\ng\n\n\n\n\n", uint16(4), int64(store.MaxSeq), int64(1), int64(253402300799999), int64(1), int64(0), int64(0))
	f.Add("\xff\na/b\n\x00\n\xff\n\xff\n\x00\n\xff\n\xff\n\xff\nbroken", uint16(8), int64(-1), int64(0), int64(-62135596800000), int64(-1), int64(1), int64(-1))
	f.Add("k\nj\nc\ni\ng\ns\nm\nh\nv\n", uint16(0xfff0), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1))
	f.Fuzz(func(t *testing.T, words string, how uint16, seq, token, start, length, off, ns int64) {
		text := strings.SplitN(words, "\n", 10)
		for len(text) < 10 {
			text = append(text, "")
		}
		if how&(1<<4) != 0 {
			for i := range text[:9] {
				// Around all bounds on the size of a text.
				text[i] = strings.Repeat(text[i], 1+int(how>>8)*int(how>>8)/8)
			}
		}
		at := func(ms int64) time.Time { return time.UnixMilli(ms).Add(time.Duration(ns % 1_000_000)) }
		r := store.Record{
			Kind: store.Kind(text[0]), WorkerType: text[1], Claim: text[2], InstanceID: text[3], Group: text[4],
			Schedule: text[5], Metadata: text[6], Worker: store.Worker{Host: text[7], Version: text[8], PID: int(seq)}, Defect: text[9],
			Seq: seq, Token: token, Priority: int(off),
			WindowStart: at(start), WindowEnd: at(start + length), SlotStart: at(start + off), SlotEnd: at(off), FixedAt: at(start - off), ReadAt: at(length),
			DoneUntil: at(start - length), Attempt: int(off % (store.MaxAttempt + 2)),
		}
		for i, zeroed := range []*time.Time{&r.WindowStart, &r.WindowEnd, &r.FixedAt, &r.ReadAt} {
			if how&(1<<i) != 0 {
				*zeroed = time.Time{}
			}
		}

		check, obey, clean := r.Check(), r.CheckEnvelope(), r.Cleaned()
		for what, err := range map[string]error{"Check()": check, "CheckEnvelope()": obey} {
			if err != nil && !errors.Is(err, store.ErrInvalid) {
				t.Fatalf("%s = %v, want ErrInvalid", what, err)
			}
			if err != nil && r.Defect == "" {
				wantShown(t, what, err.Error())
				if len(err.Error()) > 3000 {
					t.Fatalf("%s: error of %d bytes, want values not to be echoed whole", what, len(err.Error()))
				}
			}
		}
		if (obey == nil) != obeyed(r) {
			t.Fatalf("CheckEnvelope() of %+v = %v, want it valid: %v", r, obey, obeyed(r))
		}
		counted := r.Attempt >= 0 && r.Attempt <= 1_000_000
		if want := obey == nil && counted && dated(r.SlotStart, r.SlotEnd, r.FixedAt, r.DoneUntil) && fits(r.Schedule, 0, 512) && fits(r.Metadata, 0, store.MaxMetadata); (check == nil) != want {
			t.Fatalf("Check() of %+v = %v, want it valid: %v", r, check, want)
		}

		if envelope(clean) != envelope(r) {
			t.Fatalf("Cleaned() of %+v = %+v, want its envelope untouched", r, clean)
		}
		if fmt.Sprint(clean.CheckEnvelope()) != fmt.Sprint(obey) {
			t.Fatalf("Cleaned().CheckEnvelope() = %v, want %v as before", clean.CheckEnvelope(), obey)
		}
		if err := clean.Check(); (err == nil) != (obey == nil) {
			t.Fatalf("Cleaned().Check() = %v, want nil if the envelope is valid (%v)", err, obey)
		}
		if again := clean.Cleaned(); again != clean {
			t.Fatalf("Cleaned() twice = %+v, want %+v", again, clean)
		}
		if want := map[bool]int{true: r.Attempt}[counted]; clean.Attempt != want {
			t.Fatalf("Cleaned() made an Attempt of %d of %d, want %d", clean.Attempt, r.Attempt, want)
		}
		if year := r.DoneUntil.UTC().Year(); clean.DoneUntil != r.DoneUntil && (!clean.DoneUntil.IsZero() || year >= 1 && year <= 9999) {
			t.Fatalf("Cleaned() made a DoneUntil of %v of %v, want what is fit kept, and else nothing", clean.DoneUntil, r.DoneUntil)
		}
		for _, text := range []struct{ was, is string }{
			{r.Schedule, clean.Schedule}, {r.Metadata, clean.Metadata}, {r.Worker.Host, clean.Worker.Host}, {r.Worker.Version, clean.Worker.Version},
		} {
			if text.is != text.was && (text.is != "" || utf8.ValidString(text.was) && len(text.was) <= 512 && !strings.Contains(text.was, "\x00")) {
				t.Fatalf("Cleaned() made %.40q of %.40q, want what is fit kept, and else nothing", text.is, text.was)
			}
		}
		if size := len(clean.Schedule) + len(clean.Metadata) + len(clean.Worker.Host) + len(clean.Worker.Version); size > 512+store.MaxMetadata+2<<10 {
			t.Fatalf("Cleaned() has %d bytes of information, want them bounded", size)
		}

		cut := r.Truncated()
		if again := cut.Truncated(); again != cut {
			t.Fatalf("Truncated() twice = %+v, want %+v", again, cut)
		}
		for _, c := range []struct{ was, is time.Time }{
			{r.WindowStart, cut.WindowStart},
			{r.WindowEnd, cut.WindowEnd},
			{r.SlotStart, cut.SlotStart},
			{r.SlotEnd, cut.SlotEnd},
			{r.FixedAt, cut.FixedAt},
			{r.ReadAt, cut.ReadAt},
			{r.DoneUntil, cut.DoneUntil},
		} {
			if lost := c.was.Sub(c.is); lost < 0 || lost >= time.Millisecond || c.is.Nanosecond()%1_000_000 != 0 || c.is.Location() != time.UTC || c.was.IsZero() != c.is.IsZero() && lost == 0 {
				t.Fatalf("Truncated() made %v of %v, want less than 1 ms cut off", c.is, c.was)
			}
		}
	})
}
