//go:build linux

package main

import (
	"path/filepath"
	"sync"
	"testing"
)

func TestTheFenceRefusesStaleTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence.db")
	open := func() *fence {
		f, err := openFence(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.close)
		return f
	}
	first, second := open(), open()
	for i, step := range []struct {
		f     *fence
		token int64
		want  bool
	}{
		{first, 10, true},
		{first, 10, true},
		{second, 10, true},
		{second, 12, true},
		{first, 10, false},
		{first, 11, false},
		{first, 12, true},
		{second, 11, false},
		{first, 13, true},
		{second, 12, false},
	} {
		if got, err := step.f.write(t.Context(), "a", step.token); err != nil || got != step.want {
			t.Errorf("write %d with token %d = %v, %v, want %v", i, step.token, got, err, step.want)
		}
	}
	if got, err := second.write(t.Context(), "b", 1); err != nil || !got {
		t.Errorf("write of another worker type = %v, %v, want accepted", got, err)
	}

	// Many writers: the tokens of each one grow.
	var all sync.WaitGroup
	for n := range 8 {
		f := open()
		all.Go(func() {
			for token := int64(20 + n); token < 60; token += 8 {
				if _, err := f.write(t.Context(), "a", token); err != nil {
					t.Errorf("write with token %d = %v", token, err)
				}
			}
		})
	}
	all.Wait()
	tokens, err := first.writes(t.Context(), "a")
	if n := len(tokens); err != nil || n < 8 || tokens[n-1] != 59 {
		t.Errorf("writes() = %v, %v, want 59 at the end", tokens, err)
	}
	if wrong := staleWrites("a", tokens); len(wrong) > 0 {
		t.Errorf("staleWrites() = %q", wrong)
	}
}

func TestAStaleWriteThatWasAcceptedIsFound(t *testing.T) {
	if wrong := staleWrites("a", []int64{1, 1, 3, 2, 3}); len(wrong) != 1 {
		t.Errorf("staleWrites() = %q, want one", wrong)
	}
}
