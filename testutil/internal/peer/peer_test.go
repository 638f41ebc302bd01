package peer

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestAnUnavailablePeerSkipsTheTestUnlessItsStoreIsRequired(t *testing.T) {
	for _, c := range []struct {
		name, env string
		skipped   bool
	}{
		{"mongo", "", true},
		{"mongo", "cosmos", true},
		{"mongo", "mongo", false},
		{"mongo", "cosmos,mongo", false},
		{"cosmos", "", true},
		{"cosmos", "mongo", true},
		{"cosmos", "cosmos", false},
		{"cosmos", "mongo,cosmos", false},
	} {
		t.Setenv("REQUIRE_STORES", c.env)
		f := &fakeTB{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			Kind{Name: c.name}.Unavailable(f, os.ErrNotExist)
		}()
		<-done
		if f.skipped != c.skipped || f.failed == c.skipped {
			t.Errorf("%s with REQUIRE_STORES=%q: skipped %v, failed %v, want %v and %v", c.name, c.env, f.skipped, f.failed, c.skipped, !c.skipped)
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

func TestKeepMakesAThingOnceAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache", "program")
	failed := errors.New("no network")
	err := Keep(path, func(at string) error {
		if err := os.WriteFile(at, []byte("half"), 0o600); err != nil {
			t.Error(err)
		}
		return failed
	})
	if _, statErr := os.Stat(path); !errors.Is(err, failed) || !os.IsNotExist(statErr) {
		t.Errorf("Keep() of what can't be made = %v, %v, want %v and no file", err, statErr, failed)
	}
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := Keep(path, func(at string) error {
				made.Add(1)
				return os.WriteFile(at, []byte("whole"), 0o600)
			}); err != nil {
				t.Errorf("Keep() = %v, want nil", err)
			}
		})
	}
	wg.Wait()
	if b, err := os.ReadFile(path); err != nil || string(b) != "whole" || CanPause && made.Load() != 1 {
		t.Errorf("8 calls of Keep made the file %d times, with %q, %v, want once and whole", made.Load(), b, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "making-*")); err != nil || len(left) > 0 {
		t.Errorf("Keep left %v behind, %v", left, err)
	}
}
