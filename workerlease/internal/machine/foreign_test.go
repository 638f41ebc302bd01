package machine_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// What workers append after a grant, and what they can't have appended there.
func TestContradicts(t *testing.T) {
	grant := store.Record{
		WorkerType: "mail", Seq: 5, Kind: store.KindGrant, InstanceID: "w1", Claim: "c1", Token: eve.UnixMilli(),
		WindowStart: eve, WindowEnd: eve.Add(5 * time.Minute),
	}
	after := func(change func(*store.Record)) store.Record {
		r := grant
		r.Seq++
		r.WindowStart = grant.WindowEnd
		change(&r)
		return r
	}
	empty := func(kind store.Kind, at time.Time) func(*store.Record) {
		return func(r *store.Record) { r.Kind, r.WindowStart, r.WindowEnd = kind, at, at }
	}
	another := func(from, to time.Duration) func(*store.Record) {
		return func(r *store.Record) {
			r.Claim, r.Token = "c2", r.Token+1
			r.WindowStart, r.WindowEnd = eve.Add(from), eve.Add(to)
		}
	}
	both := func(changes ...func(*store.Record)) func(*store.Record) {
		return func(r *store.Record) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	token := func(by int64) func(*store.Record) { return func(r *store.Record) { r.Token += by } }
	claim := func(r *store.Record) { r.Claim = "c2" }
	group := func(r *store.Record) { r.Group = "eu" }
	higher := func(r *store.Record) { r.Seq++ }
	released := after(empty(store.KindRelease, eve.Add(time.Minute)))
	done := after(empty(store.KindDone, grant.WindowEnd))
	overridden := after(both(another(0, 0), func(r *store.Record) { r.Claim = "op" }, empty(store.KindOverride, eve.Add(time.Minute))))
	longer := func(r *store.Record) { r.WindowEnd = eve.Add(10 * time.Minute) }
	for _, c := range []struct {
		name   string
		below  store.Record
		change func(*store.Record)
		wrong  bool
	}{
		{"the first record", store.Record{}, another(0, 1), false},
		{"a grant", grant, another(5*time.Minute, 6*time.Minute), false},
		{"a grant after a gap", grant, another(7*time.Minute, 8*time.Minute), false},
		{"a grant that begins too early", grant, another(4*time.Minute, 8*time.Minute), true},
		{"a grant whose token doesn't grow", grant, both(another(5*time.Minute, 6*time.Minute), token(-1)), true},
		{"a grant whose token falls", grant, both(another(5*time.Minute, 6*time.Minute), token(-9)), true},
		{"a grant after a release", released, another(time.Minute, 6*time.Minute), false},
		{"an extension", grant, longer, false},
		{"an extension after a done record", done, longer, false},
		{"an extension after a release", released, both(longer, func(r *store.Record) { r.WindowStart = released.WindowEnd }), true},
		{"an extension with another token", grant, both(longer, token(1)), true},
		{"an extension for a group", grant, both(longer, group), true},
		{"an extension after a gap", grant, both(longer, func(r *store.Record) { r.WindowStart = eve.Add(6 * time.Minute) }), true},
		{"an extension above poison", grant, both(longer, higher, func(r *store.Record) { r.WindowStart = eve.Add(6 * time.Minute) }), false},
		{"a release", grant, empty(store.KindRelease, eve.Add(time.Minute)), false},
		{"a release at the end", grant, empty(store.KindRelease, grant.WindowEnd), false},
		{"a release after the end", grant, empty(store.KindRelease, eve.Add(6*time.Minute)), true},
		{"a release before the token", grant, empty(store.KindRelease, eve), true},
		{"a release of another claim", grant, both(empty(store.KindRelease, eve.Add(time.Minute)), claim), true},
		{"a release of another token", grant, both(empty(store.KindRelease, eve.Add(time.Minute)), token(1)), true},
		{"a second release", released, empty(store.KindRelease, eve.Add(time.Minute)), true},
		{"a release with a window", grant, both(empty(store.KindRelease, eve.Add(time.Minute)), longer), true},
		{"a release above poison", grant, both(empty(store.KindRelease, eve.Add(6*time.Minute)), claim, higher), false},
		{"a release above poison of what is below it", grant, both(empty(store.KindRelease, eve.Add(time.Minute)), claim, higher), true},
		{"a done record", grant, empty(store.KindDone, grant.WindowEnd), false},
		{"a done record of another token", grant, both(empty(store.KindDone, grant.WindowEnd), token(1)), true},
		{"a note", grant, empty("note", grant.WindowEnd), false},
		{"a note of another claim", grant, both(empty("note", grant.WindowEnd), claim), true},
		{"a note that ends the term", grant, empty("note", eve.Add(time.Minute)), true},
		{"a note that goes on with the term", grant, empty("note", eve.Add(6*time.Minute)), true},
		{"a note that has a window", grant, both(empty("note", grant.WindowEnd), longer), true},
		{"an override", grant, both(another(time.Minute, time.Minute), empty(store.KindOverride, eve.Add(time.Minute))), false},
		{"an override of what is over", grant, both(another(0, 0), empty(store.KindOverride, eve.Add(time.Hour))), false},
		{"an override above poison", grant, both(another(0, 0), empty(store.KindOverride, eve.Add(time.Minute)), higher), false},
		{"an override of a released term", released, both(another(0, 0), empty(store.KindOverride, eve.Add(time.Second))), false},
		{"an override whose token doesn't grow", grant, both(claim, empty(store.KindOverride, eve.Add(time.Minute))), true},
		{"an override with the claim below", grant, both(token(1), empty(store.KindOverride, eve.Add(time.Minute))), true},
		{"a grant after an override", overridden, another(2*time.Minute, 6*time.Minute), true},
		{"a grant after an override, with a higher token", overridden, both(another(2*time.Minute, 6*time.Minute), token(1)), false},
		{"a grant within an override's past", overridden, both(another(30*time.Second, 6*time.Minute), token(1)), true},
		{"a release of an overridden term", overridden, empty(store.KindRelease, eve.Add(2*time.Minute)), true},
		{"an extension of an overridden term", overridden, longer, true},
		{"a done record above an override", overridden, both(another(0, 0), func(r *store.Record) { r.Claim = "op" }, empty(store.KindDone, overridden.WindowEnd)), false},
		{"a reset", grant, both(another(0, 0), empty(store.KindReset, grant.WindowEnd)), false},
		{"a reset of what is in force", grant, both(another(0, 0), empty(store.KindReset, eve.Add(time.Minute))), true},
		{"a reset whose token doesn't grow", grant, both(claim, empty(store.KindReset, grant.WindowEnd)), true},
	} {
		r := after(c.change)
		if c.below.Seq == grant.Seq+1 {
			r.Seq++
		}
		if why := machine.Standard.Contradicts(c.below, r); (why != nil) != c.wrong {
			t.Errorf("%s: %v, want a contradiction: %v", c.name, why, c.wrong)
		}
	}
}

// A foreign release of one's own term stands where its extension was to go, and the outcome of that
// was not known. The head is read before anything is sent again: what was known of it is out of date.
func TestAnExtensionIsNotSentAgainWhereAnotherRecordStands(t *testing.T) {
	c := plain()
	c.Schedule, c.Failover, c.Joins = slots.Must(slots.Every(24*time.Hour)), 8*time.Hour, true
	w := newWorld(c)
	goOn := func() {
		if err := w.goOn(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.event(machine.Wake{}); err != nil {
		t.Fatal(err)
	}
	extends := func() bool { a, ok := w.op.(machine.Append); return ok && a.Record.Seq > 1 }
	for n := 0; !extends(); n++ {
		if goOn(); n > 1000 {
			t.Fatal("no extension")
		}
	}
	release := w.ledger[w.top()]
	release.Seq, release.Kind, release.InstanceID, release.WindowStart = release.Seq+1, store.KindRelease, "w2", release.WindowEnd
	if err := w.insert(release); err != nil {
		t.Fatal(err)
	}
	if err := w.event(w.reply(errTimeout, false, 0)); err != nil {
		t.Fatal(err)
	}
	appends := 0
	for end := w.local + 10*time.Minute; w.local < end; goOn() {
		if a, ok := w.op.(machine.Append); ok {
			t.Logf("seq %d is appended again", a.Record.Seq)
			appends++
		}
		if appends > 3 {
			t.Fatalf("%d appends", appends)
		}
	}
}
