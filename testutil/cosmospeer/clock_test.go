//go:build unix

package cosmospeer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAPeerWithAWrongClockLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{ClockOffset: time.Minute})
	left := func(pid int) (n int) {
		for _, name := range sharedNames {
			if _, err := os.Stat(name + strconv.Itoa(pid)); !errors.Is(err, fs.ErrNotExist) {
				n++
			}
		}
		return n
	}
	for _, end := range []func(){s.Restart, s.Kill} {
		pid := s.PID()
		before := left(pid)
		if before == 0 {
			t.Skip("this faketime shares no memory under names that are known here")
		}
		end()
		if n := left(pid); n > 0 {
			t.Errorf("%d of %d files of process %d are left", n, before, pid)
		}
	}
}

func TestFaketimeIsAskedAgainWhereItMeetsWhatAnotherLeft(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   string // in the environment, or in the error
	}{
		"once":   {"#!/bin/sh\n[ -e \"$0.met\" ] && { echo /lib/it.so; exit; }\n: > \"$0.met\"\necho 'sem_open: File exists' >&2\nexit 1\n", "LD_PRELOAD=/lib/it.so"},
		"always": {"#!/bin/sh\necho 'sem_open: File exists' >&2\nexit 1\n", "exit status 1: sem_open: File exists"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "faketime"), []byte(c.script), 0o700); err != nil { //nolint:gosec // It is to be run.
				t.Fatal(err)
			}
			t.Setenv("PATH", dir)
			env, err := shifted(time.Minute)
			if !slices.Contains(env, c.want) && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
				t.Errorf("shifted() = %q, %v, want %q", env, err, c.want)
			}
		})
	}
}
