package override

import (
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// mostTerms is how many terms, and how many records above a free key, are shown: more may be
// among poison.
const mostTerms = 10

// text is what a plan ends, and risks.
func text(p operate.OverridePlan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "worker type %s, record %d: %s\n", p.Head.WorkerType, p.Head.Seq, described(p.Head, p.HeadDefect))
	terms := p.Terms[:min(len(p.Terms), mostTerms)]
	for _, r := range terms {
		fmt.Fprintf(&b, "%s: record %d, %q%s, token %d, until %s\n", standing(p, r), r.Seq, r.InstanceID, group(r), r.Token, store.Format(r.WindowEnd))
	}
	switch more := len(p.Terms) - len(terms); {
	case more > 0:
		fmt.Fprintf(&b, "in force: %d more, of older records\n", more)
	case len(terms) == 0 && p.Head.CheckEnvelope() != nil:
		fmt.Fprintf(&b, "in force: nothing that can be read\n")
	case len(terms) == 0:
		fmt.Fprintf(&b, "in force: nothing\n")
	}
	passedOver(&b, p)
	if !p.Record.DoneUntil.Equal(p.Head.DoneUntil) && p.Head.Defect == "" {
		fmt.Fprintf(&b, "done: slots up to %s, from then on up to %s\n", moment(p.Head.DoneUntil), moment(p.Record.DoneUntil))
	}
	risks(&b, p, terms)
	return display.Text(b.String())
}

// described is what a record is.
func described(r store.Record, defect error) string {
	article, kind := "a", string(r.Kind)
	if strings.IndexAny(kind, "aeiou") == 0 {
		article = "an"
	}
	if strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz-") != "" {
		kind = display.Quote(kind) // It could pose as the rest of the line.
	}
	switch {
	case defect != nil:
		return "poison: " + oneLine(defect)
	case r.WindowStart.Equal(r.WindowEnd):
		return fmt.Sprintf("%s %s by %q, as of %s", article, kind, r.InstanceID, store.Format(r.WindowEnd))
	}
	return fmt.Sprintf("%s %s by %q, until %s", article, kind, r.InstanceID, store.Format(r.WindowEnd))
}

// standing is what is left of a term.
func standing(p operate.OverridePlan, r store.Record) string {
	if r.Seq < p.LastOverride {
		return "overridden already"
	}
	return "in force"
}

// passedOver shows the records above a free key, and what becomes of them.
func passedOver(b *strings.Builder, p operate.OverridePlan) {
	for _, r := range p.Unreachable[:min(len(p.Unreachable), mostTerms)] {
		fmt.Fprintf(b, "above a free key: record %d, %s\n", r.Seq, described(r, r.CheckEnvelope()))
	}
	if more := len(p.Unreachable) - mostTerms; more > 0 {
		fmt.Fprintf(b, "above a free key: %d more\n", more)
	}
}

// risks are what an override may do that isn't meant.
func risks(b *strings.Builder, p operate.OverridePlan, terms []store.Record) {
	for _, r := range terms {
		fmt.Fprintf(b, "risk: if %q still works, two work until %s\n", r.InstanceID, store.Format(r.WindowEnd))
		if r.Token >= p.Record.Token {
			fmt.Fprintf(b, "risk: token %d of %q isn't lower than those of the next leases, so nothing refuses it\n", r.Token, r.InstanceID)
		}
	}
	if p.HeadDefect != nil {
		fmt.Fprintf(b, "risk: if a worker obeys what others can't, two work until it looks again\n")
	}
	switch {
	case p.Next.Seq == p.Record.Seq:
	case p.NextDefect != nil:
		fmt.Fprintf(b, "risk: this takes the free key below record %d, so that workers stop at that: poison: %s\n", p.Next.Seq, oneLine(p.NextDefect))
	default:
		fmt.Fprintf(b, "risk: this takes the free key below record %d, so that workers go by that: %s\n", p.Next.Seq, described(p.Next, nil))
	}
	if p.Record.DoneUntil.Before(p.Head.DoneUntil) && p.Head.Defect == "" {
		fmt.Fprintf(b, "risk: jobs of slots after %s run again, even if they were done\n", moment(p.Record.DoneUntil))
	}
	if holdsJobs(p.Record) {
		fmt.Fprintf(b, "risk: no job runs before %s, because slots up to then count as done: --done-until TIME says another\n", moment(p.Record.DoneBefore()))
	}
}

// holdsJobs reports that an override leaves nothing to claim for jobs, for longer than the
// slot in which it was written.
func holdsJobs(r store.Record) bool {
	end := r.SlotEnd
	if schedule, err := slots.Parse(r.Schedule); err == nil {
		end = schedule.At(r.WindowStart).End
	}
	until := r.DoneBefore()
	return until.After(r.WindowStart) && until.After(end)
}

// done is what an override says of slots that are done.
func done(r store.Record) string {
	switch {
	case r.DoneUntil.IsZero():
		return ""
	case holdsJobs(r):
		return ", but no job runs before " + store.Format(r.DoneBefore()) + ": slots up to then count as done"
	}
	return ", and done up to " + store.Format(r.DoneUntil)
}

// stays says that a pause goes on.
func stays(r store.Record) string {
	for _, o := range r.OrdersAt(r.WindowStart) {
		if o.Kind == store.OrderPause {
			return ", but the worker type stays " + o.String()
		}
	}
	return ""
}

func group(r store.Record) string {
	if r.Group == "" {
		return ""
	}
	return fmt.Sprintf(" (group %q)", r.Group)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return store.Format(t)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
