package guard

import (
	"encoding/gob"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

func TestAnOrderThatIsWrittenInPartIsCompletedByTheNext(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	o := newOrders(w)
	// More than a pipe holds, and nobody reads.
	big := order{Verb: runVerb, Deadline: 1, Env: []string{strings.Repeat("e", 1<<20)}}
	if err := o.send(big, time.Now().Add(20*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("send() to a pipe that nobody reads = %v, want %v", err, os.ErrDeadlineExceeded)
	}
	if err := o.send(order{Verb: extendVerb, Deadline: 2}, time.Now().Add(time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("send() to a full pipe = %v, want %v", err, os.ErrDeadlineExceeded)
	}
	got := receive[order](gob.NewDecoder(r))
	if err := o.send(order{Verb: extendVerb, Deadline: 3}, time.Now().Add(time.Minute)); err != nil {
		t.Fatalf("send() to a pipe that is read = %v", err)
	}
	for i, want := range []verb{runVerb, extendVerb, extendVerb} {
		x := <-got
		if x.Verb != want || x.Deadline != time.Duration(i+1) || len(x.Env) != len(big.Env)*(1-min(i, 1)) {
			t.Errorf("order %d: verb %d with the deadline %v and %d variables", i, x.Verb, x.Deadline, len(x.Env))
		}
	}
	o.close()
	if x, ok := <-got; ok {
		t.Errorf("an order after the end of the pipe: %+v", x)
	}
}

func TestAPartOfAnOrderIsNoneAndEndsWithThePipe(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	o := newOrders(w)
	must(t, o.encoder.Encode(order{Verb: extendVerb, Deadline: time.Hour}))
	whole := o.unsent.Bytes()
	if _, err := w.Write(whole[:len(whole)-1]); err != nil {
		t.Fatal(err)
	}
	got := receive[order](gob.NewDecoder(r))
	select {
	case x := <-got:
		t.Errorf("a part of an order was read as %+v", x)
	case <-time.After(20 * time.Millisecond):
	}
	o.close()
	if x, ok := <-got; ok {
		t.Errorf("a part of an order was read as %+v", x)
	}
}

func TestAnExtendedCommandIsToldToEndByItsNotice(t *testing.T) {
	suites.Prove(t, "its deadline is seconds away")
	t.Parallel()
	const left, grace, notice = 5 * time.Second, 3 * time.Second, time.Second
	p, file := runTidy(t, newMark(t), left, grace)
	old := p.watch.deadline
	for _, notice := range []time.Duration{-1, grace + 1} {
		if err := p.Extend(old+time.Second, notice); err == nil || errors.Is(err, ErrTooLate) {
			t.Errorf("Extend with the notice %v = %v, want an error about that", notice, err)
		}
	}
	later := old + 200*time.Millisecond
	if err := p.Extend(later, notice); err != nil {
		t.Fatalf("Extend() = %v", err)
	}
	for told := false; !told; time.Sleep(5 * time.Millisecond) {
		_, err := os.Stat(file)
		told = err == nil
		if now := Boottime(); told && now < later-notice {
			t.Errorf("told to end %v before the deadline, want no earlier than %v", later-now, notice)
		}
	}
	wantStatus(t, p, Status{Code: 3, Reason: DeadlineReached})
}
