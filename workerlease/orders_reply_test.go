package workerlease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// levers are all orders that a client gives, and whether the head shows that one is in force.
var levers = map[string]struct {
	order operate.Order
	obeys func(head []store.Order) bool
}{
	"pause":   {operate.Order{Kind: store.OrderPause, For: time.Hour, Now: true}, only(store.OrderPause, "")},
	"resume":  {operate.Order{Kind: store.OrderDrain}, func(head []store.Order) bool { return len(head) == 0 }}, // It is ended.
	"prefer":  {operate.Order{Kind: store.OrderPrefer, Target: "b", For: time.Hour}, only(store.OrderPrefer, "b")},
	"release": {operate.Order{Kind: store.OrderRelease}, only(store.OrderRelease, planted(1, 0, time.Hour).Claim)},
	"drain":   {operate.Order{Kind: store.OrderDrain, Target: "h", For: time.Hour}, only(store.OrderDrain, "h")},
}

const why = "whatever becomes of the reply"

// only reports whether one order in force is of a kind and about a target.
func only(kind store.OrderKind, target string) func([]store.Order) bool {
	return func(head []store.Order) bool {
		n := 0
		for _, o := range head {
			if o.Kind == kind && o.Target == target && o.Why == why {
				n++
			}
		}
		return n == 1
	}
}

// Whatever becomes of its appends, an order isn't told as stored if it isn't, isn't lost without a word, and
// is never stored twice: not even if what was sent lands an hour later.
func TestAnOrderWhoseReplyIsLostIsTheOrderThatIsStored(t *testing.T) {
	gone := faultstore.Fault{HideNewest: 1}
	for name, test := range map[string]struct {
		appends, reads []faultstore.Fault // one for each try; the last of them for all that follow
		meanwhile      int                // how many appends find that another was faster
		cancel         bool               // the caller gives up in the first append
		want           error
		stored         int // records of the order in the end
	}{
		"nothing goes wrong":                    {stored: 1},
		"the reply is lost":                     {appends: faults(faultstore.LostReply()), stored: 1},
		"the driver has sent it twice":          {appends: faults(faultstore.OwnConflict()), stored: 1},
		"it is lost on its way":                 {appends: faults(faultstore.Failure(), faultstore.Fault{}), stored: 1},
		"it is lost, and then its reply":        {appends: faults(faultstore.Failure(), faultstore.LostReply()), stored: 1},
		"it is lost all the time":               {appends: faults(faultstore.Failure()), want: operate.ErrOrderUnknown},
		"it lands late, after it was sent anew": {appends: faults(faultstore.LandsLate(time.Minute), faultstore.Fault{}), stored: 1},
		"it lands late":                         {appends: faults(faultstore.LandsLate(time.Minute), faultstore.Failure()), want: operate.ErrOrderUnknown, stored: 1},
		"all that was sent lands late":          {appends: faults(faultstore.LandsLate(time.Minute)), want: operate.ErrOrderUnknown, stored: 1},
		"the reply is lost, and a read is old":  {appends: faults(faultstore.LostReply()), reads: faults(gone, faultstore.Fault{}), stored: 1},
		"the reply is lost, and all are old":    {appends: faults(faultstore.LostReply()), reads: faults(gone), want: operate.ErrOrderUnknown, stored: 1},
		"it can't be read back":                 {appends: faults(faultstore.LostReply()), reads: faults(faultstore.Failure()), want: operate.ErrOrderUnknown, stored: 1},
		"it is lost, and can't be read back":    {appends: faults(faultstore.Failure()), reads: faults(faultstore.Failure()), want: operate.ErrOrderUnknown},
		"it isn't allowed":                      {appends: faults(faultstore.Fault{Effect: faultstore.Dropped, Err: store.ErrDenied}), want: store.ErrDenied},
		"the store has not stored it":           {appends: faults(faultstore.Fault{Effect: faultstore.Dropped, Err: store.ErrNotStored}), want: store.ErrNotStored},
		"it is lost, and then isn't allowed": {
			appends: faults(faultstore.LandsLate(time.Minute), faultstore.Fault{Effect: faultstore.Dropped, Err: store.ErrDenied}), want: operate.ErrOrderUnknown, stored: 1,
		},
		"it is lost, and then isn't stored": {
			appends: faults(faultstore.LandsLate(time.Minute), faultstore.Fault{Effect: faultstore.Dropped, Err: store.ErrNotStored}), want: operate.ErrOrderUnknown, stored: 1,
		},
		"another was faster":                   {meanwhile: 1, stored: 1},
		"another was faster, and no reply":     {meanwhile: 1, appends: faults(faultstore.Failure(), faultstore.Fault{}), stored: 1},
		"another was faster than a late one":   {meanwhile: 1, appends: faults(faultstore.LandsLate(time.Minute), faultstore.LostReply()), stored: 1},
		"others were faster all the time":      {meanwhile: 100, want: operate.ErrHeadMoved},
		"the caller gives up, and it is there": {cancel: true, appends: faults(faultstore.BlackHole(faultstore.Applied)), stored: 1},
		"the caller gives up, and it is lost":  {cancel: true, appends: faults(faultstore.BlackHole(faultstore.Dropped)), want: operate.ErrOrderUnknown},
	} {
		for lever, order := range levers {
			bubble(t, lever+": "+name, func(t *testing.T) {
				inner := memory.New(memory.Options{})
				inner.Put(planted(1, 0, time.Hour))
				if lever == "resume" {
					give(t, inner.Handle(), operate.Order{Kind: store.OrderDrain, WorkerType: "job", Target: "h", For: 2 * time.Hour})
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				faster := test.meanwhile
				l := faultstore.New(inner.Handle(), faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
					switch c.Op {
					case faultstore.OpAppend:
						if faster > 0 {
							faster--
							inner.Put(beside(t, newest(t, inner)))
						}
						if test.cancel {
							time.AfterFunc(time.Second, cancel)
						}
						return nth(test.appends, c.N)
					case faultstore.OpGet:
						return nth(test.reads, c.N)
					default:
						return faultstore.Fault{}
					}
				}})
				defer l.Close(t.Context())
				act := operate.On(l).Give
				if lever == "resume" {
					act = operate.On(l).End
				}
				order.order.WorkerType, order.order.Reason = "job", why
				r, err := act(ctx, order.order)
				if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || errors.Is(err, operate.ErrOrderUnknown) != (test.want == operate.ErrOrderUnknown) {
					t.Errorf("the answer is %v, want %v", err, test.want)
				}
				if stored, getErr := inner.Handle().Get(t.Context(), "job", r.Seq); err == nil && (getErr != nil || stored != r.Truncated()) {
					t.Errorf("the answer is %+v, and the ledger has %+v, %v", r, stored, getErr)
				}
				time.Sleep(5 * time.Minute) // What is late has landed.
				n := 0
				for _, x := range records(t, inner) {
					if o, is := x.Order(); is && o.Why == why {
						n++
					}
				}
				if head := newest(t, inner).OrdersAt(time.Now()); n != test.stored || order.obeys(head) != (test.stored > 0) {
					t.Errorf("the ledger has %d records of it, and the head says %v, want %d records", n, head, test.stored)
				}
			})
		}
	}
}

func faults(f ...faultstore.Fault) []faultstore.Fault { return f }

// nth is the fault of the nth call, from 1: the last one for all that follow, and none if there are none.
func nth(of []faultstore.Fault, n int64) faultstore.Fault {
	if len(of) == 0 {
		return faultstore.Fault{}
	}
	return of[min(n, int64(len(of)))-1]
}

// beside is a record that another operator appends to the head: the end of an order that isn't in force.
func beside(t *testing.T, head store.Record) store.Record {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	text, err := store.Order{Kind: store.OrderPrefer, Target: "nobody", At: now, Until: now}.MarshalJSON()
	must(t, err)
	head.Seq, head.Kind, head.WindowStart, head.Metadata = head.Seq+1, store.KindOrder, head.WindowEnd, string(text)
	return head
}
