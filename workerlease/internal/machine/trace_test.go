package machine_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

var update = flag.Bool("update", false, "write testdata/*.txt anew")

// The traces are scripts with what the machine answers to each line; testdata/README.md
// says how to read them.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs (-want +got); if that is right, run with -update:\n%s", file, cmp.Diff(string(want), string(got)))
			}
		})
	}
}

// script runs one trace.
type script struct {
	*world
	names map[string]string // of claims
}

// replay runs a script and returns it with the answers of today.
func replay(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	var s *script
	for n, line := range strings.SplitAfter(text, "\n") {
		command := strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(command, "  ") {
			continue // an answer of before
		}
		out.WriteString(line)
		fields := strings.Fields(command)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if fields[0] == "worker" {
			s = &script{names: map[string]string{}}
			s.world = newWorld(config(fields[1:]))
			continue
		}
		if s == nil {
			t.Fatalf("line %d: a trace begins with a worker", n+1)
		}
		answer, err := s.do(fields[0], fields[1:])
		if err != nil {
			t.Fatalf("line %d: %s: %v; so far:\n%s", n+1, command, err, out.String())
		}
		out.WriteString(answer)
	}
	return out.Bytes()
}

// do runs a command, and returns the machine's answer.
func (s *script) do(command string, args []string) (string, error) {
	if command == "until" {
		return s.until(strings.Join(args, " "))
	}
	s.log = nil
	state := s.state()
	if err := s.run(command, args); err != nil {
		return "", err
	}
	if err := s.idle(s.moment()); err != nil {
		if err := errors.Join(s.event(machine.Wake{}), s.idle(s.moment())); err != nil {
			return "", err
		}
	}
	return s.show(command, state), nil
}

// until lets the worker start, the store answer honestly, and time go on, up to an answer of
// the machine with this word, which alone is shown.
func (s *script) until(word string) (string, error) {
	if s.op == nil && !s.known {
		if _, err := s.do("at", []string{"00:02:00"}); err != nil {
			return "", err
		}
	}
	for range 100 {
		command := "next"
		if s.op != nil {
			command = "ok"
		}
		if answer, err := s.do(command, nil); err != nil || strings.Contains(answer, word) {
			return answer, err
		}
	}
	return "", fmt.Errorf("%q is not answered", word)
}

// options are what a line may say that sets up the worker.
var options = map[string]func(c *machine.Config, value string){
	"every":      func(c *machine.Config, v string) { c.Schedule = slots.Must(slots.Parse("every " + v)) },
	"group":      func(c *machine.Config, v string) { c.Group = v },
	"priority":   func(c *machine.Config, v string) { c.Priority = int(v[0] - '0') },
	"join":       func(c *machine.Config, _ string) { c.Joins = true },
	"once":       func(c *machine.Config, _ string) { c.Once = true },
	"within":     func(c *machine.Config, v string) { c.StartWithin, _ = time.ParseDuration(v) },
	"attempts":   func(c *machine.Config, v string) { c.MaxAttempts = int(v[0] - '0') },
	"finishes":   func(c *machine.Config, _ string) { c.Finishes = true },
	"timeout":    func(c *machine.Config, v string) { c.Timeout, _ = time.ParseDuration(v) },
	"from":       func(c *machine.Config, v string) { c.CatchUpFrom, _ = time.ParseDuration(v) },
	"failover":   func(c *machine.Config, v string) { c.Failover, _ = time.ParseDuration(v) },
	"continuous": func(c *machine.Config, _ string) { c.Continuous = true },
	"stays":      func(c *machine.Config, _ string) { c.Continuous, c.NoFailback = true, true },
	"rotate":     func(c *machine.Config, _ string) { c.TieBreak = priority.Rotate },
	"reads":      func(c *machine.Config, _ string) { c.Follows = false },
	"work":       func(c *machine.Config, v string) { c.Work = v },
	"single":     func(c *machine.Config, _ string) { c.Single = true },
	"keepsunfit": func(c *machine.Config, _ string) { c.KeepsUnfit = true },
	"stall":      func(c *machine.Config, v string) { c.Stall, _ = time.ParseDuration(v) },
	"shortest":   func(c *machine.Config, v string) { c.Shortest, _ = time.ParseDuration(v) },
	"checks": func(c *machine.Config, _ string) {
		c.Checks, c.CheckEvery, c.CheckTimeout = true, time.Minute, 10*time.Second
	},
	"catchup": func(c *machine.Config, v string) {
		c.CatchUp = map[string]machine.CatchUp{"newest": machine.CatchUpNewest, "all": machine.CatchUpAll}[v]
	},
	"trims": func(c *machine.Config, _ string) { // all that is over, after each other slot
		c.Rules.Keep, c.Rules.TrimEvery, c.Retention = 1, 2, 2*time.Hour
	},
	"serves": func(c *machine.Config, v string) { // a trigger that was given at the start
		d, _ := time.ParseDuration(v)
		o := store.Order{Kind: store.OrderTrigger, At: eve, Until: eve.Add(d)}
		*c = c.Serving(machine.Trigger{Order: o, Seq: 1, Slots: c.Schedule, By: c.Schedule.Next(eve).Start})
	},
}

// config reads the line that sets up the worker.
func config(fields []string) machine.Config {
	c := plain()
	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		options[key](&c, value)
	}
	return c
}

// facts are commands that change what the worker finds when it looks next, and whether it does at once.
var facts = map[string]struct {
	change func(*script)
	wakes  bool
}{
	"late":       {func(s *script) { s.late = true }, false}, // the next LeaseAllocated comes
	"alone":      {func(s *script) { s.alone = true }, false},
	"lapses":     {func(s *script) { s.with.Lapsed = machine.WindowEnded }, false},
	"beside":     {func(s *script) { s.with.Beside = true }, true},
	"ended":      {func(s *script) { s.with.Beside = false }, true},
	"questioned": {func(s *script) { s.with.InQuestion = true }, true},
	"decided":    {func(s *script) { s.with.InQuestion = false }, true},
	"single":     {func(s *script) { s.with.Single = true }, true},
	"progress":   {func(s *script) { s.with.Progressed = s.local }, true},
}

// events are commands that give the machine an event.
var events = map[string]machine.Event{
	"wake":     machine.Wake{},
	"returned": machine.Returned{},
	"panicked": machine.Panicked{},
	"done":     machine.Finished{Done: true},
	"failed":   machine.Finished{},
	"rested":   machine.Rested{},
	"gaveback": machine.Finished{GivesBack: true},
	"fit":      machine.Judged{},
	"unfit":    machine.Judged{Err: errors.New("unfit")},
	"drain":    machine.Drain{},
	"hint":     machine.Hinted{},
	"stop":     machine.Stop{},
	"giveup":   machine.GiveUp{},
}

// run runs one command.
func (s *script) run(command string, args []string) error {
	if e, ok := events[command]; ok {
		return s.event(e)
	}
	if f, ok := facts[command]; ok {
		if f.change(s); f.wakes {
			return s.event(machine.Wake{})
		}
		return nil
	}
	switch command {
	case "faltered": // the work has failed, and the lease is kept
		return s.event(machine.Faltered{Claim: s.s.Hold.Held.Claim, Work: machine.Work{Error: strings.Join(args, " ")}})
	case "at": // TIME: store time goes on to then, and the worker looks
		at, err := s.clock(args[0])
		if err != nil || at.Before(s.time()) {
			return fmt.Errorf("can't go to %v: %w", at, err)
		}
		s.local += at.Sub(s.time())
		return s.event(machine.Wake{})
	case "next": // the next wait is over
		ok, err := s.wait()
		if !ok {
			return errors.New("nothing to wait for")
		}
		return err
	case "ok", "timeout", "lost", "duplicate", "error", "throttled", "stale", "denied", "notstored":
		return s.answer(command, args)
	case "land": // an append that timed out arrives now
		if len(s.adrift) == 0 {
			return errors.New("nothing can land")
		}
		err := s.insert(s.adrift[0])
		s.adrift = s.adrift[1:]
		return err
	case "other": // somebody else's record
		return s.other(args)
	case "trimmed": // somebody else trimmed all records below a seq
		before, err := strconv.ParseInt(args[0], 10, 64)
		maps.DeleteFunc(s.ledger, func(seq int64, _ store.Record) bool { return seq < before })
		return err
	case "loses": // the store loses all records from a seq on
		from, err := strconv.ParseInt(args[0], 10, 64)
		maps.DeleteFunc(s.ledger, func(seq int64, _ store.Record) bool { return seq >= from })
		return err
	case "steps": // the store's clock
		by, err := time.ParseDuration(args[0])
		s.turn(by)
		if s.op != nil {
			return err // it shows in the answer
		}
		return errors.Join(err, s.event(machine.Wake{}))
	case "passes", "takes", "spread": // time goes on, and the worker doesn't look; each operation takes so long; half the width of the interval
		d, err := time.ParseDuration(args[0])
		*map[string]*time.Duration{"passes": &d, "takes": &s.takes, "spread": &s.spread}[command] = d
		if command == "passes" {
			s.local += d
		}
		return err
	case "order": // KIND of an operator, until=TIME to=TARGET now; without a time, an earlier one ends
		o := store.Order{Kind: store.OrderKind(args[0])}
		for _, arg := range args[1:] {
			var err error
			switch key, value, _ := strings.Cut(arg, "="); key {
			case "until":
				o.Until, err = s.clock(value)
			case "to":
				o.Target = value
			case "now":
				o.Now = true
			default:
				err = fmt.Errorf("unknown field %q", key)
			}
			if err != nil {
				return err
			}
		}
		return s.give(o)
	case "worked": // the code has ended with an error, and its lease before that
		return s.event(machine.Worked{Claim: s.s.Hold.Left.Claim, Failed: true, Work: machine.Work{Error: strings.Join(args, " "), Took: 3 * time.Second}})
	case "served": // a run for a trigger is over
		return s.event(machine.Served{At: s.s.Triggers.Order.At, Over: true})
	case "history": // NAME of the store's, from here on
		s.with.History = args[0]
		return s.event(machine.Wake{})
	}
	return fmt.Errorf("unknown command %q", command)
}

// answer lets the store answer the operation under way.
func (s *script) answer(command string, args []string) error {
	if s.op == nil {
		return errors.New("nothing is under way")
	}
	switch command {
	case "timeout": // not applied, but it may land
		return s.event(s.reply(errTimeout, false, 0))
	case "lost": // applied, but the reply was lost
		return s.event(s.reply(errTimeout, true, 0))
	case "denied":
		return s.event(s.reply(store.ErrDenied, false, 0))
	case "notstored":
		return s.event(s.reply(store.ErrNotStored, false, 0))
	case "duplicate": // applied, and the driver's own retry found it
		return s.event(s.reply(store.ErrConflict, true, 0))
	case "throttled":
		after, err := time.ParseDuration(args[0])
		return errors.Join(err, s.event(s.reply(&store.ThrottledError{RetryAfter: after, Err: errors.New("429")}, false, 0)))
	case "error":
		return s.event(s.reply(errors.New(strings.Join(args, " ")), false, 0))
	case "stale": // without the newest record
		return s.event(s.reply(nil, false, 1))
	}
	return s.event(s.reply(nil, false, 0))
}

// other puts somebody else's record into the ledger.
func (s *script) other(args []string) error {
	r := store.Record{
		WorkerType: "mail", Seq: s.top() + 1, Kind: store.KindGrant, InstanceID: "w2",
		Schedule: s.m.Schedule.String(), ReadAt: s.time().Truncate(time.Millisecond),
	}
	head := s.ledger[s.top()]
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch key {
		case "seq":
			r.Seq, err = strconv.ParseInt(value, 10, 64)
		case "kind":
			r.Kind = store.Kind(value)
			r.Claim, r.Token, r.Group = head.Claim, head.Token, head.Group
			r.WindowStart, r.WindowEnd = head.WindowEnd, head.WindowEnd
			r.SlotStart, r.SlotEnd = head.SlotStart, head.SlotEnd
		case "holder":
			r.InstanceID = value
		case "group":
			r.Group = value
		case "schedule":
			r.Schedule = strings.ReplaceAll(value, "_", " ")
		case "defect":
			r = store.Record{WorkerType: "mail", Seq: r.Seq, Defect: strings.ReplaceAll(value, "_", " ")}
		case "token":
			r.Token, err = strconv.ParseInt(value, 10, 64)
		case "spared":
			r.Spared = int(value[0] - '0')
		case "work":
			r.Work, r.FixedAt = value, r.ReadAt
		case "attempt":
			r.Attempt = int(value[0] - '0')
		case "done":
			r.DoneUntil, err = s.clock(value)
		case "readat":
			r.ReadAt, err = s.clock(value)
		case "window", "slot": // the slot after the window
			start, end, _ := strings.Cut(value, "…")
			from, err1 := s.clock(start)
			to, err2 := s.clock(end)
			err = errors.Join(err1, err2)
			if r.SlotStart, r.SlotEnd = from, to; key == "window" {
				r.WindowStart, r.WindowEnd = from, to
			}
		default:
			err = fmt.Errorf("unknown field %q", key)
		}
		if err != nil {
			return err
		}
	}
	if r.Defect == "" && r.Claim == "" {
		r.Claim = fmt.Sprintf("%s-%d", r.InstanceID, r.Seq)
	}
	if r.Token == 0 && r.Defect == "" {
		r.Token = max(r.WindowStart.UnixMilli(), head.Token+1)
	}
	return s.insert(r)
}

// clock reads a time of the first day, or of another with its date in front.
func (s *script) clock(text string) (time.Time, error) {
	if !strings.Contains(text, "T") {
		text = eve.Format(time.DateOnly) + "T" + text
	}
	return time.Parse(time.RFC3339, text+"Z")
}
