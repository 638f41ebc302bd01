package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
)

// versionsOf runs version --check on a ledger.
func versionsOf(t *testing.T, l store.Ledger, this string, asJSON bool) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	o := Options{Timeout: time.Minute, JSON: asJSON}
	err := showVersions(t.Context(), storeuri.Target{Scheme: "sqlite", Shown: "sqlite:leases.db"}, l, o, this, Screen{Writer: &stdout})
	return stdout.String(), err
}

func TestVersionsOfThoseThatAreThereAreCompared(t *testing.T) {
	l := attended(t)
	all, err := l.Presences(t.Context(), "")
	must(t, err)
	for _, p := range all {
		if p.InstanceID == "worker-c" {
			p.Version = "v1.3.0"
		}
		if p.Phase == store.PhaseStepping {
			p.Version = ""
		}
		must(t, l.Attend(t.Context(), []store.Presence{p}))
	}
	out, err := versionsOf(t, l, "v1.3.0", false)
	// worker-d and long-gone are gone, and worker-f has stopped.
	want := `versions of workers · sqlite:leases.db · store time 2026-03-02T12:42:30.000Z

VERSION  PROCESSES  INSTANCES
v1.2.3           4  evil�[2J, worker-a, worker-b
unknown          1  worker-e
v1.3.0           1  worker-c
`
	if out != want {
		t.Errorf("version --check wrote\n%s\nwant\n%s", out, want)
	}
	if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != exit.Unsound || err.Error() != "5 of 6 processes run another version than this leasectl, v1.3.0" {
		t.Errorf("version --check = %v, want a fault that counts them", err)
	}
	var f Fleet
	out, _ = versionsOf(t, l, "v1.2.3", true)
	if err := json.Unmarshal([]byte(out), &f); err != nil || len(f.Releases) != 3 || !f.Releases[0].Same || f.Releases[2].Same || f.Version != "v1.2.3" {
		t.Errorf("version --check --output json wrote %s, %v", out, err)
	}
}

func TestALedgerWhoseWorkersRunThisVersionHasNoFault(t *testing.T) {
	if out, err := versionsOf(t, memory.New(memory.Options{}), "v1.2.3", false); err != nil || !strings.Contains(out, "no workers are known") {
		t.Errorf("version --check of an empty ledger wrote\n%s\n%v", out, err)
	}
	if out, err := versionsOf(t, attended(t), "v1.2.3", false); err != nil || !strings.Contains(out, "v1.2.3") {
		t.Errorf("version --check wrote\n%s\n%v, want no fault", out, err)
	}
}

// partial is a ledger whose roster of a worker type can't be read, beside those that can.
type partial struct {
	*memory.Ledger

	spoiled string
}

func (p partial) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if workerType == p.spoiled {
		return nil, p.Unlisted()
	}
	return p.Ledger.Presences(ctx, workerType)
}

func (p partial) Unlisted() error {
	return fmt.Errorf("roster:%s is no hash, remove it: %w", p.spoiled, store.ErrRefused)
}

// No worker is known to run this version that can't be listed; and the roster is for information, so that the ledger is shown.
func TestARosterThatCannotBeReadHidesNoLedgerAndIsNotTakenForWhole(t *testing.T) {
	l := partial{attended(t), "export"}
	if _, err := versionsOf(t, partial{l.Ledger, "mail"}, "v1.2.3", false); err == nil || !strings.Contains(err.Error(), "other version") {
		t.Errorf("version --check = %v, want that others are known", err)
	}
	all, err := l.Ledger.Presences(t.Context(), "")
	must(t, err)
	for _, p := range all {
		p.Version = "v1.2.3"
		must(t, l.Attend(t.Context(), []store.Presence{p}))
	}
	if _, err := versionsOf(t, l.Ledger, "v1.2.3", false); err != nil {
		t.Errorf("version --check = %v, want nil of one version", err)
	}
	if _, err := versionsOf(t, partial{l.Ledger, "mail"}, "v1.2.3", false); err == nil || !strings.Contains(err.Error(), "others may run another version: roster:mail is no hash, remove it") {
		t.Errorf("version --check of a list that lacks some = %v, want that it lacks them", err)
	}
	if got, err := whyOf(t, l, "", "", ""); err != nil || !strings.Contains(got, "has the slot from 12:40:00Z") ||
		!strings.Contains(got, "The workers can't be listed: of them, only those that had the slot are known.") || !strings.Contains(got, "warning: the workers can't be listed: roster:export is no hash") {
		t.Errorf("why = %s, %v, want who has the slot, and that no more is known", got, err)
	}
	var status bytes.Buffer
	err = showStatus(t.Context(), storeuri.Target{}, l, Options{WorkerType: "export", Timeout: time.Minute}, Screen{Writer: &status, Report: func(err error) { status.WriteString(err.Error()) }})
	if err != nil || !strings.Contains(status.String(), "\nexport ") || !strings.Contains(status.String(), "warning: the workers can't be listed: roster:export is no hash") {
		t.Errorf("status = %s, %v, want the worker type, and that its workers aren't known", status.String(), err)
	}
}
