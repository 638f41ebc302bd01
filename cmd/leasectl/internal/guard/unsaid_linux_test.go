package guard

import (
	"encoding/gob"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
)

// A program that is slow hears of its command after the deadline. It isn't told that nothing was started, or a job with a
// single attempt would begin twice.
func TestACommandThatBeganUnheardWasNotTooLateToStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent bool // the order, before its time was over
		want error
	}{
		"the report is late": {true, ErrUnsaid},
		"the order is late":  {false, ErrTooLate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark, begun := newMark(t), filepath.Join(t.TempDir(), "begun")
			first, err := Command{
				Path: "/bin/sh", Args: []string{"-c", `: > "$0"; sleep 1000`, begun}, Env: marked(mark), Deadline: Boottime() + time.Hour,
			}.order()
			must(t, err)
			p, err := launch(Command{Path: "/bin/sh"}, watch{deadline: first.Deadline})
			must(t, err)
			past := time.Now().Add(-time.Second)
			limit := past
			if c.sent {
				limit = time.Now().Add(time.Hour)
			}
			sent := p.orders.send(first, limit)
			if c.sent {
				procs.Eventually(t, "the command has begun", func() bool {
					_, err := os.Stat(begun)
					return err == nil
				})
			}
			_ = p.reports.SetReadDeadline(past)
			if _, err := p.confirm(sent); !isError(err, c.want) || isError(err, ErrTooLate) == c.sent {
				t.Errorf("the start failed with %v, want %v", err, c.want)
			}
			if left := carriers(mark); len(left) > 0 {
				t.Errorf("processes %d live", left)
			}
			if _, err := os.Stat(begun); (err == nil) != c.sent {
				t.Errorf("the command has begun: %v, want %v", err == nil, c.sent)
			}
		})
	}
}

// The deadline may come while a command is started by a file server that is slow: it has begun, or not, and is killed.
func TestACommandThatIsKilledWhileItStartsMayHaveBegun(t *testing.T) {
	t.Parallel()
	p, err := launch(Command{Path: "/bin/sh"}, watch{deadline: Boottime() + time.Hour})
	must(t, err)
	_ = p.reports.Close()
	reports, write, err := os.Pipe()
	must(t, err)
	p.reports = reports
	must(t, gob.NewEncoder(write).Encode(report{Ended: true, Status: killedBy9.because(DeadlineReached)}))
	if _, err := p.confirm(nil); !isError(err, ErrUnsaid) || isError(err, ErrTooLate) {
		t.Errorf("the start failed with %v, want %v", err, ErrUnsaid)
	}
	_ = write.Close()
}
