//go:build linux

package main

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/testutil/mongopeer"
)

func TestTheFenceRefusesStaleTokens(t *testing.T) {
	for name, where := range map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string {
			t.Helper()
			return filepath.Join(t.TempDir(), "fence.db")
		},
		"mongo": func(t *testing.T) string {
			t.Helper()
			return mongopeer.Start(t).URI()
		},
	} {
		t.Run(name, func(t *testing.T) {
			address := where(t)
			open := func() fence {
				f, err := openFence(t.Context(), address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { f.close(context.Background()) })
				return f
			}
			first, second := open(), open()
			for i, step := range []struct {
				f     fence
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

			// A crowd, each with tokens of its own that grow.
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
			r, err := checkFence(t.Context(), first, []workerType{{name: "a"}, {name: "b"}})
			if err != nil || len(r.wrong) > 0 || r.accepted < 8 {
				t.Errorf("checkFence() = %+v, %v", r, err)
			}
			tokens, err := first.writes(t.Context(), "a")
			if err != nil || len(tokens) == 0 || tokens[len(tokens)-1] != 59 {
				t.Errorf("writes() = %v, %v, want 59 at the end", tokens, err)
			}
		})
	}
}

// lax is a fence that lets everything through.
type lax struct{ tokens []int64 }

func (l *lax) write(_ context.Context, _ string, token int64) (bool, error) {
	l.tokens = append(l.tokens, token)
	return true, nil
}
func (l *lax) writes(context.Context, string) ([]int64, error) { return l.tokens, nil }
func (l *lax) close(context.Context)                           {}

func TestAStaleWriteThatWasAcceptedIsFound(t *testing.T) {
	l := &lax{}
	for _, token := range []int64{1, 1, 3, 2, 3} {
		if _, err := l.write(t.Context(), "a", token); err != nil {
			t.Fatal(err)
		}
	}
	r, err := checkFence(t.Context(), l, []workerType{{name: "a"}})
	if err != nil || len(r.wrong) != 1 || r.accepted != 5 {
		t.Errorf("checkFence() = %+v, %v, want one that is wrong", r, err)
	}
}
