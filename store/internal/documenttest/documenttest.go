// Package documenttest checks, for tests, what errors say, and what a ledger in a
// document database promises beyond the contract that testutil/storetest checks, and
// lets workers lead on it.
package documenttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/fault"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Within is the context of one operation.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Must ends the test unless an error is nil.
func Must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s = %v, want nil", what, err)
	}
}

// Is demands that an error is the wanted one, or nil.
func Is(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

// Says demands an error that is the wanted one, unless that is nil, and that its text
// has some parts.
func Says(t testing.TB, what string, err, want error, parts ...string) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s = %v, want an error that is %v and says %q", what, err, want, parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s = %v, want %q in it", what, err, part)
		}
	}
}

// Equal demands that a value is the wanted one.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	verb := "%+v"
	if _, ok := any(want).(string); ok {
		verb = "%q"
	}
	if got != want {
		t.Errorf("%s = "+verb+", want "+verb, what, got, want)
	}
}

// ErrorOf is the error of a call with a result.
func ErrorOf[T any](_ T, err error) error { return err }

// Operations are those of a ledger by name: of an append of r, a trim below it, and
// reads of the worker type "job".
func Operations(l store.Ledger, r store.Record) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Init":        func(ctx context.Context) error { return l.Init(ctx) },
		"Append":      func(ctx context.Context) error { return l.Append(ctx, r) },
		"Get":         func(ctx context.Context) error { _, err := l.Get(ctx, "job", 1); return err },
		"Tail":        func(ctx context.Context) error { _, _, err := l.Tail(ctx, "job", 1); return err },
		"Trim":        func(ctx context.Context) error { _, err := l.Trim(ctx, r.WorkerType, r.Seq); return err },
		"WorkerTypes": func(ctx context.Context) error { _, err := l.WorkerTypes(ctx); return err },
		"Now":         func(ctx context.Context) error { _, err := l.Now(ctx); return err },
	}
}

// Sentinel demands that an error matches one sentinel and no other, in one short
// line. A nil sentinel stands for an error that means "unknown".
func Sentinel(t *testing.T, what string, err, want error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s = nil, want an error", what)
		return
	}
	for _, s := range []error{
		store.ErrConflict, store.ErrNotFound, store.ErrInvalid, store.ErrThrottled, store.ErrRefused,
		store.ErrDenied, store.ErrMissing, store.ErrClosed,
	} {
		if got := errors.Is(err, s); got != errors.Is(want, s) {
			t.Errorf("%s = %v: matches %q: %v, want %v", what, err, s, got, !got)
		}
	}
	if text := err.Error(); strings.ContainsAny(text, "\n\r") || len(text) > 2*fault.MaxText {
		t.Errorf("%s = %q, want one line of at most %d bytes", what, text, 2*fault.MaxText)
	}
}

// Sound checks a record that was decoded at the key (job, 7) from an arbitrary
// document. again encodes and decodes a record.
func Sound(t *testing.T, got store.Record, again func(store.Record) store.Record) {
	t.Helper()
	if got.WorkerType != "job" || got.Seq != 7 {
		t.Fatalf("decode() = %+v, want the key kept", got)
	}
	if len(got.Defect) > 2*fault.MaxText || strings.ContainsAny(got.Defect, "\n\r") {
		t.Errorf("decode(): Defect %q, want one short line", got.Defect)
	}
	if got.Defect != "" && got != (store.Record{WorkerType: "job", Seq: 7, Defect: got.Defect}) {
		t.Errorf("decode() = %+v, want nothing but the key and the Defect", got)
	}
	if got.CheckEnvelope() != nil {
		return
	}
	if err := got.Check(); err != nil {
		t.Fatalf("decode() = %+v, whose information is unfit: %v", got, err)
	}
	// What passes comes back the same.
	if again := again(got); again != got {
		t.Errorf("decode(encode(r)) = %+v, want %+v", again, got)
	}
}

// InEnvelope reports whether a Defect names a field of the envelope. Information
// that is unfit must not be a Defect.
func InEnvelope(defect string) bool {
	field, _, _ := strings.Cut(defect, ":")
	return slices.Contains([]string{
		document.WorkerType, document.Seq, document.Kind, document.InstanceID, document.Group,
		document.Claim, document.WindowStart, document.WindowEnd, document.Token, document.ReadAt,
	}, field)
}

// OddWorker checks that a Worker which can't be stored as it is costs itself alone.
func OddWorker(t *testing.T, again func(store.Record) store.Record) {
	t.Helper()
	r := storetest.Grant("job", 7)
	r.Worker = store.Worker{Host: "h\xff\x00", PID: -1, Version: strings.Repeat("v", 2<<10)}
	got := again(r)
	if want := (store.Worker{Host: "h\uFFFD\x00", PID: -1}); got.Worker != want || got.Check() != nil {
		t.Errorf("decode(encode(r)) = %+v, want a valid record by %+v", got, want)
	}
}

// OddIDs checks that documents whose ids are no keys are reported by one Defect and
// are neither trimmed nor listed. plant adds them, the highest above all keys of the
// worker type "job", and left counts all documents.
func OddIDs(ctx context.Context, t *testing.T, l store.Ledger, plant func(), left func() int) {
	t.Helper()
	for seq := range int64(5) {
		if err := l.Append(ctx, storetest.Grant("job", seq+1)); err != nil {
			t.Fatal(err)
		}
	}
	plant()
	odd := left() - 5
	for limit, want := range map[int][]int64{1: {0, 5}, 2: {0, 5, 4}, 3: {0, 5, 4, 3}, 9: {0, 5, 4, 3, 2, 1}} {
		got, _, err := l.Tail(ctx, "job", limit)
		var seqs []int64
		for _, r := range got {
			seqs = append(seqs, r.Seq)
		}
		if err != nil || !slices.Equal(seqs, want) {
			t.Errorf("Tail(job, %d) = Seqs %d, %v, want %d", limit, seqs, err, want)
		}
		if len(got) > 0 && (got[0].Defect == "" || got[0].WorkerType != "job") {
			t.Errorf("Tail(job, %d): first %+v, want one with a Defect", limit, got[0])
		}
	}
	if n, err := l.Trim(ctx, "job", 5); n != 4 || err != nil {
		t.Errorf("Trim(job, 5) = %d, %v, want 4", n, err)
	}
	if n := left(); n != odd+1 {
		t.Errorf("documents left = %d, want %d: a trim deletes records only", n, odd+1)
	}
	if got, err := l.WorkerTypes(ctx); err != nil || !slices.Equal(got, []string{"job"}) {
		t.Errorf("WorkerTypes() = %q, %v, want job", got, err)
	}
}

// TypesAmongOddIDs checks that worker types are listed, whatever else there is. plant
// adds a document for a worker type.
func TypesAmongOddIDs(ctx context.Context, t *testing.T, l store.Ledger, plant func(workerType, id string)) {
	t.Helper()
	var want []string
	for i := range 12 {
		name := fmt.Sprintf("%c-%d", 'a'+i, i)
		want = append(want, name)
		for seq := range int64(25) {
			plant(name, store.Key(name, seq+1))
		}
		for j := range 20 {
			plant(fmt.Sprintf("%c-odd%d", 'a'+i, j), fmt.Sprintf("%c-odd%d:1", 'a'+i, j))
		}
	}
	for _, name := range []string{"", ":", "-x", "\x00", "é", "~", strings.Repeat("w", 64)} {
		plant(name, store.Key(name, 1))
	}
	if got, err := l.WorkerTypes(ctx); err != nil || !slices.Equal(got, want) {
		t.Errorf("WorkerTypes() = %q, %v, want %q", got, err, want)
	}
}
