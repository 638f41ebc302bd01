package cosmospeer

import (
	"bytes"
	"os"
	"runtime"
	"testing"
)

func TestAbsentPeerSkipsOrFails(t *testing.T) {
	for _, c := range []struct {
		env     string
		skipped bool
	}{
		{"", true},
		{"mongo", true},
		{"cosmos", false},
		{"mongo,cosmos", false},
	} {
		t.Setenv("REQUIRE_STORES", c.env)
		f := &fakeTB{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			unavailable(f, os.ErrNotExist)
		}()
		<-done
		if f.skipped != c.skipped || f.failed == c.skipped {
			t.Errorf("REQUIRE_STORES=%q: skipped %v, failed %v, want %v and %v", c.env, f.skipped, f.failed, c.skipped, !c.skipped)
		}
	}
}

func TestLockfileHoldsNoAddresses(t *testing.T) {
	for _, name := range sourceNames[:2] {
		b, err := source.ReadFile("server/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, []byte("://")); i >= 0 {
			t.Errorf("%s holds the address …%s…, want none: see the comment above source", name, b[max(0, i-20):min(len(b), i+40)])
		}
	}
}

// fakeTB notes how a test was ended.
type fakeTB struct {
	testing.TB
	skipped, failed bool
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Skipf(string, ...any) {
	f.skipped = true
	runtime.Goexit()
}

func (f *fakeTB) Fatalf(string, ...any) {
	f.failed = true
	runtime.Goexit()
}
