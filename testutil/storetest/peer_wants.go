package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// attempt is an append, and what came of it.
type attempt struct {
	record store.Record
	err    error
}

// all calls f with each operation of a handle, for many at once.
func (s *served) all(t *testing.T, l store.Ledger, f func(name string, call func(ctx context.Context) error)) {
	t.Helper()
	calls := map[string]func(ctx context.Context) error{
		"Init()":        l.Init,
		"Append()":      func(ctx context.Context) error { return l.Append(ctx, s.next()) },
		"Get()":         func(ctx context.Context) error { _, err := l.Get(ctx, s.workerType, 1); return err },
		"Tail()":        func(ctx context.Context) error { _, _, err := l.Tail(ctx, s.workerType, 3); return err },
		"Trim()":        func(ctx context.Context) error { _, err := l.Trim(ctx, "unused", 2); return err },
		"WorkerTypes()": func(ctx context.Context) error { _, err := l.WorkerTypes(ctx); return err },
		"Now()":         func(ctx context.Context) error { _, err := l.Now(ctx); return err },
	}
	if p, ok := store.As[store.Pager](l); ok {
		calls["Page()"] = func(ctx context.Context) error { _, err := p.Page(ctx, s.workerType, 0, 3); return err }
	}
	if r, ok := store.As[store.Roster](l); ok {
		calls["Attend()"] = func(ctx context.Context) error { return r.Attend(ctx, []store.Presence{Presence(s.workerType, "a")}) }
		calls["Leave()"] = func(ctx context.Context) error { return r.Leave(ctx, s.workerType, []string{"b"}) }
		calls["Presences()"] = func(ctx context.Context) error { _, err := r.Presences(ctx, s.workerType); return err }
	}
	var wg sync.WaitGroup
	for name, call := range calls {
		wg.Go(func() { f(name, call) })
	}
	wg.Wait()
	s.examines(t, l)
}

// examines lets the store examine itself, which must end in time, too, and say nothing secret.
func (s *served) examines(t *testing.T, l store.Ledger) {
	t.Helper()
	said := store.Describe(l)
	if said.CheckRights != nil {
		_ = s.inTime(t, "CheckRights()", said.CheckRights)
	}
	if said.Examine == nil {
		return
	}
	var found []store.Finding
	_ = s.inTime(t, "Examine()", func(ctx context.Context) (err error) { found, err = said.Examine(ctx); return err })
	for _, f := range found {
		text := fmt.Sprint(f.Text, " → ", f.Remedy)
		s.wantPlain(t, "Examine(), "+f.Check, errors.New(text))
		s.wantPlain(t, "the error of Examine(), "+f.Check, f.Err)
	}
}

// failing calls all operations, and 16 more appends, of a handle whose server doesn't answer. The appends are
// returned.
func (s *served) failing(t *testing.T, state string, l store.Ledger, paused bool) []attempt {
	t.Helper()
	if l == nil {
		return nil
	}
	check := func(what string, err error) {
		t.Helper()
		if wantMeaningless(t, what, err); paused && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s = %v, want an error that matches context.DeadlineExceeded", what, err)
		}
	}
	sent := make([]attempt, 16)
	var wg sync.WaitGroup
	for i := range sent {
		sent[i].record = s.next()
		wg.Go(func() {
			what := "Append() to " + state + " server"
			sent[i].err = s.inTime(t, what, func(ctx context.Context) error { return l.Append(ctx, sent[i].record) })
			check(what, sent[i].err)
		})
	}
	s.all(t, l, func(name string, call func(ctx context.Context) error) {
		what := name + " on " + state + " server"
		err := s.inTime(t, what, call)
		if !errors.Is(err, errors.ErrUnsupported) {
			check(what, err)
		}
	})
	wg.Wait()
	return sent
}

// opensOrFails opens a handle of a server that doesn't answer; nil if that is refused.
func (s *served) opensOrFails(t *testing.T) (l store.Ledger) {
	t.Helper()
	err := s.inTime(t, "Open() meanwhile", func(ctx context.Context) (err error) { l, err = s.Open(ctx); return err })
	if err != nil {
		wantMeaningless(t, "Open() meanwhile", err)
		return nil
	}
	s.closing(t, l)
	return l
}

// works demands that a handle works again soon, without being opened anew.
func (s *served) works(t *testing.T, what string, l store.Ledger) {
	t.Helper()
	if l == nil {
		return
	}
	s.await(t, "Append() by "+what, func(ctx context.Context) error { return l.Append(ctx, s.next()) })
	s.await(t, "Tail() by "+what, func(ctx context.Context) error { _, _, err := l.Tail(ctx, s.workerType, 3); return err })
	s.await(t, "Now() by "+what, func(ctx context.Context) error {
		stamp, err := l.Now(ctx)
		if err == nil && (stamp.IsZero() || stamp.Server == "") {
			t.Errorf("Now() by %s = %+v, want a stamp of the server", what, stamp)
		}
		return err
	})
	s.await(t, "WorkerTypes() by "+what, func(ctx context.Context) error { _, err := l.WorkerTypes(ctx); return err })
	if r, ok := store.As[store.Roster](l); ok {
		s.await(t, "Attend() by "+what, func(ctx context.Context) error {
			err := r.Attend(ctx, []store.Presence{Presence(s.workerType, "a")})
			if errors.Is(err, errors.ErrUnsupported) {
				return nil
			}
			return err
		})
	}
}

// settle demands that each append came to what its error says, as two new handles see it: stored, not stored, or
// one of the two when nobody could know.
func (s *served) settle(t *testing.T, sent []attempt) {
	t.Helper()
	l, other := s.handle(t), s.handle(t)
	for _, a := range sent {
		r, key := a.record, store.Key(a.record.WorkerType, a.record.Seq)
		s.wantPlain(t, "Append("+key+")", a.err)
		switch {
		case a.err == nil:
			got, err := l.Get(within(t), r.WorkerType, r.Seq)
			if err != nil {
				t.Errorf("Get(%s) = %v, want the record: it was acknowledged", key, err)
				continue
			}
			wantRecord(t, "what was acknowledged", got, r)
		case errors.Is(a.err, store.ErrConflict):
			// A driver that repeats an append may find its own.
			wantRecord(t, "what had a conflict with nothing but itself", get(t, l, r.WorkerType, r.Seq), r)
		case errors.Is(a.err, store.ErrNotStored):
			absent(t, l, r.WorkerType, r.Seq)
		default:
			s.settleUnknown(t, l, other, a)
		}
	}
}

// settleUnknown lets a rival append to the key: one of the two records is stored, whole, and stays.
func (s *served) settleUnknown(t *testing.T, l, other store.Ledger, a attempt) {
	t.Helper()
	wantMeaningless(t, "an append that was cut off", a.err)
	rival := a.record
	rival.Claim, rival.InstanceID = "rival", "rival"
	before, beforeErr := l.Get(within(t), rival.WorkerType, rival.Seq)
	err := l.Append(within(t), rival)
	want := rival
	switch {
	case errors.Is(err, store.ErrConflict):
		want = a.record
	case err != nil:
		t.Errorf("Append() of a rival, after one that was cut off = %v, want nil or ErrConflict", err)
		return
	case beforeErr == nil:
		t.Errorf("Append() of a rival = nil, although Get() gave %+v before", before)
	}
	wantRecord(t, "what was settled", get(t, l, want.WorkerType, want.Seq), want)
	wantRecord(t, "what was settled, by another handle", get(t, other, want.WorkerType, want.Seq), want)
}

// leavesNothing demands that no goroutine is left by a part of a case, which opens and closes handles.
func leavesNothing(t *testing.T, part func(t *testing.T) []attempt) (sent []attempt) {
	t.Helper()
	before := runtime.NumGoroutine()
	if !t.Run("while it lasts", func(t *testing.T) { sent = part(t) }) {
		return sent
	}
	for began := wall.Now(); runtime.NumGoroutine() > before; wall.Sleep(10 * time.Millisecond) {
		if wall.Since(began) > leaving {
			var stacks bytes.Buffer
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			t.Errorf("%d goroutines are left, and there were %d before:\n%s", runtime.NumGoroutine(), before, &stacks)
			break
		}
	}
	return sent
}
