package doctor

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/store"
)

func TestWhatTheKernelSaysOfItsClockIsShown(t *testing.T) {
	defer func(was func(*unix.Timex) (int, error)) { adjtimex = was }(adjtimex)
	for name, c := range map[string]struct {
		state  int
		status int32
		err    error
		level  store.Level
		says   string
	}{
		"synchronised": {level: store.LevelOK, says: "synchronised, to 3ms at most"},
		"an error":     {state: unix.TIME_ERROR, level: store.LevelWarn, says: "not synchronised → run chrony"},
		"a flag":       {status: unix.STA_UNSYNC, level: store.LevelWarn, says: "not synchronised"},
		"no right":     {err: unix.EPERM, level: store.LevelSkip, says: "operation not permitted"},
	} {
		adjtimex = func(x *unix.Timex) (int, error) {
			if x.Modes != 0 {
				t.Errorf("%s: adjtimex() was to set something: %+v", name, x)
			}
			x.Status, x.Maxerror = c.status, 3000
			return c.state, c.err
		}
		wants(t, judgeNTP(), c.level, c.says)
	}
}
