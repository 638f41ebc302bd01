package store_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

var given = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

func order(kind store.OrderKind, target string, change ...func(o *store.Order)) store.Order {
	o := store.Order{Kind: kind, Target: target, At: given, Until: given.Add(time.Hour), By: "ann", Why: "upgrade"}
	for _, f := range change {
		f(&o)
	}
	return o
}

func TestOrdersAreReadAsTheyWereWritten(t *testing.T) {
	want := []store.Order{
		order(store.OrderPause, "", func(o *store.Order) { o.Now = true }),
		order("hologram", "t", func(o *store.Order) { o.By, o.Why = "", `"<&>\ é` }),
	}
	text, err := store.FormatOrders(want)
	if err != nil {
		t.Fatalf("FormatOrders() = %v", err)
	}
	const plain = `[{"kind":"pause","at":"2026-03-02T12:00:00.000Z","until":"2026-03-02T13:00:00.000Z","now":true,"by":"ann","why":"upgrade"},` +
		`{"kind":"hologram","target":"t","at":"2026-03-02T12:00:00.000Z","until":"2026-03-02T13:00:00.000Z","why":"\"<&>\\ é"}]`
	if text != plain {
		t.Errorf("FormatOrders() = %s, want %s", text, plain)
	}
	if got, err := store.ParseOrders(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ParseOrders() = %+v, %v, want %+v", got, err, want)
	}
	if text, err := store.FormatOrders(nil); text != "" || err != nil {
		t.Errorf("FormatOrders(nil) = %q, %v, want nothing", text, err)
	}
	if got, err := store.ParseOrders(""); got != nil || err != nil {
		t.Errorf(`ParseOrders("") = %v, %v, want none`, got, err)
	}
}

func TestOrderCheckTellsAllProblemsAtOnce(t *testing.T) {
	err := store.Order{Target: "a\nb", By: strings.Repeat("b", 257), Why: "\xff", Attempts: -1}.Check()
	for _, want := range []string{"kind: must not be empty", "target: must have no control", "by: 257 bytes", "why: must be UTF-8", "at: must be set", "until: must be set", "attempts: -1"} {
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Check() = %v, want ErrInvalid with %q", err, want)
		}
	}
	if err := order(store.OrderPause, "").Check(); err != nil {
		t.Errorf("Check() of a pause = %v", err)
	}
	if _, err := store.FormatOrders(make([]store.Order, 9)); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "9 of them") {
		t.Errorf("FormatOrders() of 9 = %v, want ErrInvalid that says so", err)
	}
	long := order(store.OrderPrefer, strings.Repeat("x", 256), func(o *store.Order) { o.By, o.Why = o.Target, o.Target })
	if _, err := store.FormatOrders([]store.Order{long, long, long}); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "at most 2048") {
		t.Errorf("FormatOrders() of long texts = %v, want ErrInvalid that says so", err)
	}
}

func TestOrdersEndByThemselvesAndNotEarly(t *testing.T) {
	pause, drain := order(store.OrderPause, ""), order(store.OrderDrain, "host", func(o *store.Order) { o.Until = given.Add(2 * time.Hour) })
	text, _ := store.FormatOrders([]store.Order{pause, drain})
	r := store.Record{Orders: text}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 2}, {time.Hour - 1, 2}, {time.Hour, 1}, {2 * time.Hour, 0}} {
		if got := r.OrdersAt(given.Add(c.after)); len(got) != c.want {
			t.Errorf("OrdersAt(+%v) = %v, want %d", c.after, got, c.want)
		}
	}
	if got := (store.Record{Orders: "broken"}).OrdersAt(given); got != nil {
		t.Errorf("OrdersAt() of what can't be read = %v, want none", got)
	}
}

func TestAnOrderTakesThePlaceOfThatOfItsKind(t *testing.T) {
	ends := func(o *store.Order) { o.Until = o.At }
	all := []store.Order{
		order(store.OrderPause, ""), order(store.OrderPrefer, "a"), order(store.OrderRelease, "claim"),
		order(store.OrderDrain, "host 1"), order(store.OrderDrain, "host 2"),
	}
	for _, c := range []struct {
		name string
		add  store.Order
		want []int // of all; 9 is the new one
	}{
		{"a pause", order(store.OrderPause, ""), []int{1, 2, 3, 4, 9}},
		{"a preference of another", order(store.OrderPrefer, "b"), []int{0, 2, 3, 4, 9}},
		{"a drain of one more host", order(store.OrderDrain, "host 3"), []int{0, 1, 2, 3, 4, 9}},
		{"a drain of the same host", order(store.OrderDrain, "host 1"), []int{0, 1, 2, 4, 9}},
		{"a resume", order(store.OrderPause, "", ends), []int{1, 2, 3, 4}},
		{"the end of a drain", order(store.OrderDrain, "host 2", ends), []int{0, 1, 2, 3}},
		{"the end of all drains", order(store.OrderDrain, "", ends), []int{0, 1, 2}},
	} {
		var want []store.Order
		for _, i := range c.want {
			if i == 9 {
				want = append(want, c.add)
			} else {
				want = append(want, all[i])
			}
		}
		if got := store.WithOrder(all, c.add); !reflect.DeepEqual(got, want) {
			t.Errorf("WithOrder() of %s = %v, want %v", c.name, got, want)
		}
	}
}

func TestTheOrderOfARecordIsInItsMetadata(t *testing.T) {
	want := order(store.OrderPrefer, "a")
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	r := store.Record{Kind: store.KindOrder, Metadata: string(text)}
	if got, ok := r.Order(); !ok || got != want {
		t.Errorf("Order() = %+v, %v, want %+v", got, ok, want)
	}
	for _, r := range []store.Record{{Kind: store.KindGrant, Metadata: string(text)}, {Kind: store.KindOrder, Metadata: "x"}} {
		if got, ok := r.Order(); ok {
			t.Errorf("Order() of %+v = %+v, want none", r, got)
		}
	}
}

func TestOrderString(t *testing.T) {
	now := func(o *store.Order) { o.Now = true }
	for want, o := range map[string]store.Order{
		"paused until 2026-03-02T13:00:00.000Z, at once, by ann: upgrade": order(store.OrderPause, "", now),
		"prefers a until 2026-03-02T13:00:00.000Z by ann: upgrade":        order(store.OrderPrefer, "a"),
		"asks for the release of claim 7 by ann: upgrade":                 order(store.OrderRelease, "7"),
		"drains host h until 2026-03-02T13:00:00.000Z by ann: upgrade":    order(store.OrderDrain, "h"),
		"hologram t until 2026-03-02T13:00:00.000Z":                       order("hologram", "t", func(o *store.Order) { o.By, o.Why = "", "" }),
		"no more drain of h by ann: upgrade":                              order(store.OrderDrain, "h", func(o *store.Order) { o.Until = o.At }),
	} {
		if got := o.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

func FuzzOrders(f *testing.F) {
	for _, s := range []string{
		"", "[]", "null", "{}", `[{"kind":"pause","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z"}]`,
		`[{"kind":"drain","target":"h","at":"2026-03-02T00:00:00+02:00","until":"0000-03-02T02:00:00Z","now":true,"x":[1]}]`,
		`[{"kind":"a\u0000","at":"9999-12-31T23:59:59.999999Z","until":"0001-01-01T00:00:00Z","by":"\u2028","why":"<"}]`, "\xff", strings.Repeat("[", 3000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		orders, err := store.ParseOrders(text)
		r := store.Record{Orders: text}
		if kept := r.Cleaned().Orders; kept != map[bool]string{true: text}[err == nil] {
			t.Fatalf("Cleaned().Orders = %q of %q (%v), want what can be read, and else nothing", kept, text, err)
		}
		if err != nil {
			if !errors.Is(err, store.ErrInvalid) || len(err.Error()) > 3000 {
				t.Fatalf("ParseOrders(%.80q) = %v, want a short ErrInvalid", text, err)
			}
			wantShown(t, "ParseOrders()", err.Error())
			return
		}
		canonical, err := store.FormatOrders(orders)
		if err != nil {
			if len(canonical) <= store.MaxOrders {
				t.Fatalf("FormatOrders(%+v) = %v, want nothing but its length against it", orders, err)
			}
			return
		}
		again, err := store.ParseOrders(canonical)
		if err != nil || !reflect.DeepEqual(again, orders) {
			t.Fatalf("ParseOrders(FormatOrders(%+v)) = %+v, %v", orders, again, err)
		}
		for _, o := range orders {
			wantShown(t, "String()", strings.Map(func(r rune) rune {
				if r == '\u2028' || r == '\u2029' || r > 0x7f {
					return '?' // Terminals are safe from these by the command's own escapes.
				}
				return r
			}, o.String()))
		}
	})
}
