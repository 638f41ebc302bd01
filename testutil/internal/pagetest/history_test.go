package pagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// history is what workers have left in a ledger.
type history struct {
	records   []store.Record
	presences []store.Presence
}

// length is how long the workers of the history have worked, in slots of half an hour: 52 of them.
const length = 26 * time.Hour

// hostile is what an attacker writes wherever a text may stand: markup for the places of a document in which it could be
// put, and characters that change how a line is read.
const hostile = `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'><svg/onload=alert(3)>` +
	"\u202eevil\u2066\u200b\x1b]0;owned\a\x1b[2J\u2028javascript:alert(4) {{7*7}} ${alert(5)}"

// exit is the error of a command that ended with a code.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d, ended by itself", int(e)) }
func (e exit) ExitCode() int { return int(e) }

// made is the one history of a test binary.
var made = struct {
	sync.Mutex
	history
}{}

// past is what workers have done in the last 26 hours. It is made by the engine, in a bubble whose time ends now.
func past(t *testing.T) history {
	t.Helper()
	suites.Prove(t, "it makes a history of a day, to be looked at by other programs")
	made.Lock()
	defer made.Unlock()
	if made.records == nil {
		end := time.Now().Truncate(time.Second)
		synctest.Test(t, func(t *testing.T) { made.history = live(t, end) })
	}
	return made.history
}

// world is what the workers of a history share.
type world struct {
	t        *testing.T
	ledger   *memory.Ledger
	schedule slots.Schedule
	ctx      context.Context
	done     sync.WaitGroup
}

// live lets workers work until a time, and returns what is in the ledger then. The newest boundary is ten minutes before the
// end, so that none is near while tests look.
func live(t *testing.T, end time.Time) history {
	minute := end.Add(-10*time.Minute).Minute() % 30
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{t: t, ledger: memory.New(memory.Options{}), ctx: ctx, schedule: slots.Must(slots.Cron(fmt.Sprintf("%d,%d * * * *", minute, minute+30), "Europe/Berlin"))}
	begin := end.Add(-length)
	time.Sleep(time.Until(begin))
	w.jobs()
	w.leaders()
	w.orders()
	time.Sleep(time.Until(end))
	synctest.Wait()
	var h history
	for _, workerType := range w.types() {
		for after := int64(0); ; {
			page, err := w.ledger.Page(ctx, workerType, after, store.MaxPage)
			must(t, err)
			if len(page) == 0 {
				break
			}
			after = page[len(page)-1].Seq
			h.records = append(h.records, page...)
		}
	}
	var err error
	if h.presences, err = w.ledger.Presences(ctx, ""); err != nil {
		t.Fatal(err)
	}
	cancel()
	w.done.Wait()
	time.Sleep(time.Minute) // Those of the roster end, too.
	// All workers are of this machine; each is to be of its own.
	for i := range h.records {
		h.records[i].Worker.Host = host(h.records[i].InstanceID)
	}
	for i := range h.presences {
		h.presences[i].Host = host(h.presences[i].InstanceID)
	}
	return h
}

// host is the machine of a worker, which is named after it.
func host(instanceID string) string {
	_, machine, _ := strings.Cut(instanceID, "@")
	return machine
}

func (w *world) types() []string {
	types, err := w.ledger.WorkerTypes(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return types
}

// options are those of a worker: its type, and its name with the machine.
func (w *world) options(workerType, name string) workerlease.Options {
	o := workerlease.Options{WorkerType: workerType, InstanceID: name, Schedule: w.schedule, Retention: 72 * time.Hour, Labels: map[string]string{"region": "west"}}
	if strings.HasSuffix(name, "@vm-2") {
		o.Priority, o.Labels = 1, map[string]string{"region": "east"}
	}
	return o
}

// work runs a task from one time to another after the beginning, on a clock that is off.
func (w *world) work(o workerlease.Options, from, to, off time.Duration, ledger store.Ledger, task workerlease.Task) {
	local := clocks.Skewed(clock.New(), off)
	w.done.Go(func() {
		ctx, cancel := context.WithTimeout(w.ctx, to)
		defer cancel()
		select {
		case <-time.After(from):
		case <-ctx.Done():
			return
		}
		err := workerlease.NewClient(ledger, workerlease.ClientOptions{Roster: true, Clock: local}).Run(ctx, o, task)
		if err != nil && ctx.Err() == nil {
			w.t.Errorf("%s of %s: %v", o.InstanceID, o.WorkerType, err)
		}
	})
}

// always is longer than a history.
const always = 2 * length

// takes is a task that takes a time, writes a line, and ends with an error or nil.
func takes(d time.Duration, wrote string, err error) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
		l.Wrote(wrote)
		return err
	}
}

// jobs are the types that do something once for each slot.
func (w *world) jobs() {
	job := func(workerType, name string, j workerlease.Job) workerlease.Options {
		o := w.options(workerType, name)
		// Few extensions, so that a ledger stays small: the MongoDB peer reads all of it for each answer.
		o.Job, o.FailoverWithin = &j, 15*time.Minute
		return o
	}
	for _, name := range []string{"anna@vm-1", "bert@vm-2"} {
		w.work(job("report.done", name, workerlease.Job{}), 0, always, 0, w.ledger, takes(4*time.Minute, "made 12 pages\n", nil))
		w.work(job("report.fails", name, workerlease.Job{MaxAttempts: 2}), 0, always, 0, w.ledger, takes(time.Minute, "disk /var is full\n", exit(3)))
		w.work(job("report.cut", name, workerlease.Job{MaxAttempts: 1, Overrun: workerlease.Stop}), 0, always, 0, w.ledger, takes(always, "", nil))
		w.work(job("report.skips", name, workerlease.Job{}), 0, always, 0, w.ledger, takes(70*time.Minute, "", nil))
		// Nobody was there for three hours of the night.
		w.work(job("mail.missed", name, workerlease.Job{}), 0, length-8*time.Hour, 0, w.ledger, takes(time.Minute, "", nil))
		w.work(job("mail.missed", name, workerlease.Job{}), length-5*time.Hour, always, 0, w.ledger, takes(time.Minute, "", nil))
		w.work(job("mail.triggered", name, workerlease.Job{}), 0, always, 0, w.ledger, takes(2*time.Minute, "", nil))
	}
	evil := job("zz.hostile", hostile, workerlease.Job{MaxAttempts: 1})
	evil.Metadata, evil.Labels = hostile, map[string]string{"a": hostile, "b": strings.Repeat("long", 60)}
	w.work(evil, 0, always, 0, w.ledger, takes(time.Minute, hostile+strings.Repeat("\nmore"+hostile, 20), errors.New(hostile)))
}

// leaders are the types that take turns, or lead.
func (w *world) leaders() {
	idle := func(ctx context.Context, _ workerlease.Lease) error { <-ctx.Done(); return nil }
	for _, name := range []string{"anna@vm-1", "bert@vm-2"} {
		w.work(w.options("lead.paused", name), 0, always, 0, w.ledger, idle)
		w.work(w.options("mail.nobody", name), 0, length-2*time.Hour, 0, w.ledger, idle)
	}
	// All workers are of this machine, which isn't drained: anna is, by hand.
	w.work(w.options("lead.drained", "anna@vm-1"), 0, length-3*time.Hour, 0, w.ledger, idle)
	w.work(w.options("lead.drained", "bert@vm-2"), 0, always, 0, w.ledger, idle)
	w.work(w.options("sync.differs", "anna@vm-1"), 0, always, 0, w.ledger, idle)
	other := w.options("sync.differs", "bert@vm-2")
	other.Schedule = slots.Must(slots.Every(2 * time.Hour))
	w.work(other, 0, always, 0, w.ledger, idle)
	w.work(w.options("sync.skewed", "bert@vm-2"), 0, always, 0, w.ledger, idle)
	w.work(w.options("sync.skewed", "carl@vm-3"), 0, always, 40*time.Second, w.ledger, idle)
	// The holder loses its store, and so says no more, nine minutes before the end: one minute into its slot.
	w.work(w.options("lead.dead", "dora@vm-4"), 0, always, 0, &mute{Ledger: w.ledger, from: time.Now().Add(length - 9*time.Minute)}, idle)
	w.work(w.options("lead.dead", "bert@vm-2"), 0, always, 0, w.ledger, idle)
}

// orders are those of operators.
func (w *world) orders() {
	desk := operate.On(w.ledger)
	give := func(at time.Duration, o operate.Order) {
		w.done.Go(func() {
			select {
			case <-time.After(at):
			case <-w.ctx.Done():
				return
			}
			o.InstanceID = "rosa@desk"
			if _, err := desk.Give(w.ctx, o); err != nil {
				w.t.Errorf("%s: %v", o.WorkerType, err)
			}
		})
	}
	give(length-3*time.Hour, operate.Order{WorkerType: "lead.paused", Kind: store.OrderPause, For: 200 * time.Hour, Reason: "moving the database"})
	give(length-3*time.Hour, operate.Order{WorkerType: "lead.drained", Kind: store.OrderDrain, Target: "vm-1", For: 200 * time.Hour, Reason: "new kernel"})
	give(length-70*time.Minute, operate.Order{WorkerType: "mail.triggered", Kind: store.OrderTrigger, For: time.Hour, Reason: "the customer called"})
	give(length-time.Minute, operate.Order{WorkerType: "zz.hostile", Kind: store.OrderPrefer, Target: "<b>bold</b>", For: 200 * time.Hour, Reason: "<img src=x onerror=alert(6)>"})
}

// errMute is the error of a ledger that can't be reached.
var errMute = errors.New("no route to the store")

// mute is a ledger that takes nothing from a time on.
type mute struct {
	*memory.Ledger
	from time.Time
}

// err is why the ledger takes nothing.
func (m *mute) err() error {
	if time.Now().Before(m.from) {
		return nil
	}
	return errMute
}

func (m *mute) Append(ctx context.Context, r store.Record) error {
	if err := m.err(); err != nil {
		return err
	}
	return m.Ledger.Append(ctx, r)
}

func (m *mute) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if err := m.err(); err != nil {
		return err
	}
	return m.Ledger.AppendAfter(ctx, r, prev)
}

func (m *mute) Attend(ctx context.Context, presences []store.Presence) error {
	if err := m.err(); err != nil {
		return err
	}
	return m.Ledger.Attend(ctx, presences)
}
