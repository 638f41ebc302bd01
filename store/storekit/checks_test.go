package storekit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

func TestOfOneTableFollowsWhatIsToldRefusedAndWarnedOf(t *testing.T) {
	t.Parallel()
	results := map[string]error{}
	row := func(name string, level store.Level, standing bool) storekit.Check {
		return storekit.Check{Name: name, Level: level, Standing: standing, Grant: "grant it", Ask: func(context.Context) (string, error) { return "sound", results[name] }}
	}
	connection, alone := row("connection", store.LevelFail, false), row("alone", store.LevelWarn, false)
	connection.Needed, alone.Alone = "no connection", true
	rows := []storekit.Check{connection, alone, row("a", store.LevelFail, true), row("b", store.LevelWarn, true), row("c", store.LevelFail, false)}
	runner := storekit.NewRunner(storekit.RunnerOptions{Store: "test"})
	flaw := func(level store.Level) error {
		return storekit.Flaws{{What: "it forgets", Remedy: "mend it", Level: level}}
	}
	for name, w := range map[string]struct {
		results        map[string]error
		told           string
		refused, right error
		warning        string
	}{
		"sound":         {nil, "ok ok ok ok ok", nil, nil, ""},
		"out of reach":  {map[string]error{"connection": errors.New("refused")}, "fail ok skip skip skip", nil, nil, ""},
		"a flaw":        {map[string]error{"a": flaw("")}, "ok ok fail ok ok", store.ErrRefused, nil, ""},
		"a lesser flaw": {map[string]error{"a": flaw(store.LevelWarn)}, "ok ok warn ok ok", nil, nil, "it forgets: mend it"},
		"a warning":     {map[string]error{"b": flaw("")}, "ok ok ok warn ok", nil, nil, "it forgets: mend it"},
		"a right":       {map[string]error{"c": store.ErrDenied}, "ok ok ok ok fail", nil, store.ErrDenied, ""},
		"unknown":       {map[string]error{"b": storekit.Skip("why"), "c": storekit.Skip("why")}, "ok ok ok skip skip", nil, nil, ""},
	} {
		results = w.results
		c := &storekit.Checks{Rows: rows, Runner: runner, Clock: clock.New()}
		fit, right := c.Fit(t.Context()), c.Ask(t.Context(), "c")
		found, err := c.Examine(t.Context())
		var told []string
		for _, f := range found {
			told = append(told, string(f.Level))
			if f.Level == store.LevelFail && f.Remedy == "" && f.Check != "connection" {
				t.Errorf("%s: %+v has no remedy", name, f)
			}
		}
		if err != nil || strings.Join(told, " ") != w.told || !errors.Is(fit, w.refused) || !errors.Is(right, w.right) || c.Warning() != w.warning {
			t.Errorf("%s: Examine() = %v, %v, Fit() = %v, Ask() = %v, Warning() = %q, want %+v", name, told, err, fit, right, c.Warning(), w)
		}
	}
	if err := runner.Close(t.Context(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if found, err := (&storekit.Checks{Rows: rows, Runner: runner}).Examine(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Examine() after Close() = %v, want ErrClosed", fmt.Sprint(found, err))
	}
}
