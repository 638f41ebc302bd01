package workerlease_test

import (
	"context"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// forestalled lets a record of another worker or an operator, which changes no term, come before the first
// release.
type forestalled struct {
	store.Ledger
	kind store.Kind
	done bool
}

func (l *forestalled) Append(ctx context.Context, r store.Record) error {
	if r.Kind == store.KindRelease && !l.done {
		l.done = true
		other, err := l.Get(ctx, r.WorkerType, r.Seq-1)
		if err != nil {
			return err
		}
		other.Seq, other.Kind, other.WindowStart, other.Metadata = r.Seq, l.kind, other.WindowEnd, ""
		if err := l.Ledger.Append(ctx, other); err != nil {
			return err
		}
	}
	return l.Ledger.Append(ctx, r)
}

func TestAReleaseIsMadeAgainAfterARecordThatChangesNoTerm(t *testing.T) {
	for _, kind := range []store.Kind{store.KindDone, store.KindOutcome, store.KindOrder, "audit"} {
		bubble(t, string(kind), func(t *testing.T) {
			l := &forestalled{Ledger: memory.New(memory.Options{}), kind: kind}
			start(t, setup{ledger: l, Options: named("a", 0), task: func(context.Context, workerlease.Lease) error { return errWork }})
			at(6 * time.Minute)
			got := records(t, l)
			if len(got) != 3 || got[2].Kind != store.KindRelease || got[2].Claim != got[0].Claim {
				t.Fatalf("the records are %+v, want a grant, one of kind %s, and the release of the grant's term", got, kind)
			}
			if o, ok := got[2].Outcome(); !ok || o.Error != errWork.Error() {
				t.Errorf("the release says %+v, want that the task has failed", o)
			}
		})
	}
}
