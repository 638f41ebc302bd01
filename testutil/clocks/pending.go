package clocks

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// pending are the timers of a mock. They are private to it, but only the mock knows
// which of them were stopped or reset: a wrapper doesn't see calls of those methods.
type pending struct {
	mu     *sync.Mutex
	timers reflect.Value
}

// pendingOf panics unless the mock is that of clock v1.1 to v1.3, which have the same
// fields.
func pendingOf(m *clock.Mock) pending {
	mu, ok := private(m, "mu").Addr().Interface().(*sync.Mutex)
	timers := private(m, "timers")
	if !ok || timers.Kind() != reflect.Slice || !timers.Type().Elem().Implements(reflect.TypeFor[timer]()) {
		panic(unknownMock("mu or timers is of another type"))
	}
	return pending{mu, timers}
}

type timer interface{ Next() time.Time }

// private makes an unexported field accessible.
func private(m *clock.Mock, name string) reflect.Value {
	field := reflect.ValueOf(m).Elem().FieldByName(name)
	if !field.IsValid() {
		panic(unknownMock("it has no field " + name))
	}
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
}

func unknownMock(why string) string {
	return fmt.Sprintf("clocks: unknown version of github.com/benbjohnson/clock: Mock: %s: use v1.3.5", why)
}

// next is when the first of the timers is due.
func (p pending) next() (first time.Time, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.timers.Len() {
		due := p.timers.Index(i).Interface().(timer).Next()
		if !found || due.Before(first) {
			first, found = due, true
		}
	}
	return first, found
}
