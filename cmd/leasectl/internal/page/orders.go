package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// order is what a user wants to be done. Its names don't change; JSON has them in lower case at first.
type order struct {
	Action, WorkerType, InstanceID, Host, For, Reason, Kind string
	Now                                                     bool
}

// actions are those that an order may name, with what goes with each beside a reason: what ends with ! is needed.
var actions = map[string]struct {
	takes string
	do    func(ctx context.Context, t storeuri.Target, o lever.Options, out io.Writer) error
}{
	"pause":   {"workerType! for! now", lever.Pause},
	"resume":  {"workerType! kind host", lever.Resume},
	"prefer":  {"workerType! instanceId! for! now", lever.Prefer},
	"release": {"workerType!", lever.Release},
	"drain":   {"workerType host! for! now", lever.Drain},
	"trigger": {"workerType! for", func(ctx context.Context, t storeuri.Target, o lever.Options, out io.Writer) error {
		return lever.Trigger(ctx, t, o, out, io.Discard)
	}},
}

// done is the answer to an order: what was done, or would be odd about it, and the command that does the same.
type done struct {
	Text    string `json:"text,omitempty"`
	Warning string `json:"warning,omitempty"` // of a dry order: the text of another one has it
	Command string `json:"command"`
}

// order reads an order, and makes the function that gives it; if it is dry, that finds out whether it could be given.
func (p *Page) order(w http.ResponseWriter, r *http.Request, user string, dry bool) (func(ctx context.Context) (any, error), error) {
	const most = 8 << 10
	if err := p.o.Access.checkOrder(r); err != nil {
		return nil, err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
	var o order
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	body.DisallowUnknownFields()
	if err := body.Decode(&o); err != nil {
		return nil, refuse(http.StatusBadRequest, "the order can't be read: %v", err)
	}
	if _, err := body.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(http.StatusBadRequest, "the order can't be read: more follows it: give one at a time")
	}
	command, options, err := o.read()
	if err != nil {
		return nil, err
	}
	options.By, options.Timeout, options.Yes, options.Dry, options.JSON = cmp.Or(user, p.o.Operator), p.o.Timeout, true, dry, dry
	return func(ctx context.Context) (any, error) {
		var out bytes.Buffer
		// Whoever asked for it may be gone before it is written: it is written all the same.
		err := actions[o.Action].do(context.WithoutCancel(ctx), p.o.Target, options, &out)
		answer := done{Command: advice.Command(p.o.Target, command)}
		if dry {
			var would lever.Given
			_ = json.Unmarshal(out.Bytes(), &would) // That of a refused order is empty.
			answer.Warning = would.Warning
		} else {
			answer.Text = out.String()
			if r, err := p.Open(ctx, ""); err == nil { // The next looks are new ones, and come soon.
				r.Ledger.(*inspect.Cache).Refresh(o.WorkerType, 0)
			}
			p.hub.hinted(o.WorkerType)
		}
		if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.Usage {
			err = failure{http.StatusBadRequest, oneLine(err)}
		}
		return answer, err
	}, nil
}

// read makes a command of an order, and the options of its lever. What is wrong by the order alone is told at once.
func (o order) read() (command string, l lever.Options, err error) {
	a, known := actions[o.Action]
	if !known {
		return "", l, refuse(http.StatusBadRequest, "action %.40q: must be pause, resume, prefer, release, drain or trigger", o.Action)
	}
	l = lever.Options{WorkerType: o.WorkerType, Target: o.InstanceID + o.Host, Now: o.Now, Reason: o.Reason, Kind: store.OrderKind(o.Kind)}
	lasts, now, takes := "--for", "", strings.Fields(a.takes+" reason")
	if o.Action == "trigger" {
		lasts = "--within"
	}
	if o.Now {
		now = "true"
	}
	if o.For != "" {
		l.For, err = time.ParseDuration(o.For)
	}
	var bad []string
	command = "leasectl " + o.Action
	for _, f := range []struct{ name, option, text string }{
		{"workerType", "--worker-type", o.WorkerType},
		{"instanceId", "--instance-id", o.InstanceID},
		{"kind", "--kind", o.Kind},
		{"host", "--host", o.Host},
		{"for", lasts, o.For},
		{"reason", "--reason", o.Reason},
		{"now", "--now", now},
	} {
		needed, why := slices.Contains(takes, f.name+"!"), ""
		word, sayable := display.Word(f.text)
		switch {
		case f.text == "" && needed:
			bad = append(bad, f.name+" is missing")
		case f.text == "":
		case !needed && !slices.Contains(takes, f.name):
			why = "means nothing to " + o.Action
		case !sayable:
			why = "must have no characters that can't be shown"
		case f.name == "workerType" && store.CheckWorkerType(f.text) != nil:
			why = "no worker type has such a name"
		case f.name == "for" && (err != nil || l.For < time.Millisecond):
			why = "must be a duration such as 90s, 10m or 1h30m, of 1ms or more"
		case f.name == "now":
			command += " --now"
		default:
			command += " " + f.option + " " + word
		}
		if why != "" {
			bad = append(bad, fmt.Sprintf("%s %.70q: %s", f.name, f.text, why))
		}
	}
	if len(bad) > 0 {
		return "", l, refuse(http.StatusBadRequest, "%s", strings.Join(bad, "; "))
	}
	return command, l, nil
}
