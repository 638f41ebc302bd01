package operate_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// An order of an operator's ends by itself. In place of a move's, it would let workers here claim beside those on the other store.
func TestOnlyAnEndThatRisksTwoHoldersEndsThePauseOfAMove(t *testing.T) {
	desk := operate.On(memory.New(memory.Options{}))
	moved := operate.Order{Kind: store.OrderPause, WorkerType: "t", For: time.Hour, Target: store.PauseOfMove(store.MoveLeft, "x")}
	if _, err := desk.Give(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	for _, risk := range []bool{false, true} {
		pause := operate.Order{Kind: store.OrderPause, WorkerType: "t", For: time.Second, RiskTwoHolders: risk}
		if _, err := desk.Give(t.Context(), pause); !errors.Is(err, operate.ErrPausedByMove) {
			t.Errorf("Give() of a pause, risk %v = %v, want ErrPausedByMove", risk, err)
		}
		end := operate.Order{WorkerType: "t", RiskTwoHolders: risk}
		if _, err := desk.End(t.Context(), end); errors.Is(err, operate.ErrPausedByMove) == risk || (err == nil) != risk {
			t.Errorf("End(), risk %v = %v, want ErrPausedByMove without the risk alone", risk, err)
		}
	}
}

// A program may ask for more runs than a job makes. An operator can pause the job all the same.
func TestTriggersLeaveRoomForAPause(t *testing.T) {
	for name, reason := range map[string]string{"many": "more", "long": strings.Repeat("x", 256)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := operate.On(memory.New(memory.Options{}))
				var err error
				n := 0
				for ; err == nil; n++ {
					time.Sleep(time.Second)
					_, err = d.Give(t.Context(), operate.Order{WorkerType: "report", Kind: store.OrderTrigger, Reason: reason, InstanceID: "program"})
				}
				if !errors.Is(err, operate.ErrTooManyOrders) || n < 3 || n > 5 {
					t.Errorf("trigger %d = %v, want that 2 to 4 wait, and no more", n, err)
				}
				for _, kind := range []store.OrderKind{store.OrderPause, store.OrderDrain} {
					o := operate.Order{WorkerType: "report", Kind: kind, For: time.Hour, Reason: strings.Repeat("y", 256), InstanceID: "anna"}
					if _, err := d.Give(t.Context(), o); err != nil {
						t.Errorf("%s = %v", kind, err)
					}
				}
			})
		})
	}
}
