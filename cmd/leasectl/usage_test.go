package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestWhatIsWrongIsToldInOneLineEachWithAHint(t *testing.T) {
	const forms = "sqlite:PATH, mongodb://…/DATABASE?collection=NAME, mongodb+srv://…, or cosmos://ACCOUNT/DATABASE/CONTAINER"
	key, connection := "COSMOS_KEY=a2V5", "COSMOS_CONNECTION_STRING=AccountEndpoint=https://h/;AccountKey=a2V5;"
	ok := []string{"run", "--store", "sqlite:x.db", "--worker-type", "t", "--every", "5m"}
	with := func(args ...string) []string { return append(append([]string(nil), ok...), args...) }
	for name, test := range map[string]struct {
		args []string
		env  []string
		want []string // stderr, without "leasectl: " and the last "try: "
	}{
		"no store":                  {args: []string{"init"}, want: []string{"no store: name one with --store or LEASECTL_STORE", "--store sqlite:leases.db, or export LEASECTL_STORE=mongodb://…"}},
		"an empty store":            {args: []string{"init", "--store", ""}, want: []string{"--store: has no scheme: use " + forms, "leasectl init --help"}},
		"a store without scheme":    {args: []string{"init", "--store", "leases.db"}, want: []string{"--store: has no scheme: use " + forms, "leasectl init --help"}},
		"a bad store in the env":    {args: []string{"init"}, env: []string{"LEASECTL_STORE=leases.db"}, want: []string{"LEASECTL_STORE: has no scheme: use " + forms, "leasectl init --help"}},
		"two stores":                {args: []string{"init", "--store", "sqlite:x.db", "--store-file", "uri"}, want: []string{"--store and --store-file: give only one of them", "leasectl init --help"}},
		"two stores in the env":     {args: []string{"init"}, env: []string{"LEASECTL_STORE=sqlite:x.db", "LEASECTL_STORE_FILE=uri"}, want: []string{"LEASECTL_STORE and LEASECTL_STORE_FILE are set: set only one", "leasectl init --help"}},
		"a file that isn't there":   {args: []string{"init", "--store-file", "no/uri"}, env: []string{"LEASECTL_STORE=sqlite:x.db"}, want: []string{`--store-file "no/uri": no such file or directory`, "leasectl init --help"}},
		"no file in the env":        {args: []string{"init"}, env: []string{"LEASECTL_STORE_FILE=no/uri"}, want: []string{`LEASECTL_STORE_FILE "no/uri": no such file or directory`, "leasectl init --help"}},
		"an unnamed file":           {args: []string{"init", "--store-file", ""}, want: []string{`--store-file "": must not be empty; leave the option out for the default`, "leasectl init --help"}},
		"a file of no use":          {args: []string{"version", "--store-file", "x"}, want: []string{`--store-file: means nothing to "leasectl version"`, "leasectl version --help"}},
		"a file to plan for":        {args: []string{"plan", "--every", "5m", "--store-file", "no/uri"}, want: []string{`--store-file "no/uri": no such file or directory`, "leasectl plan --help"}},
		"a scheme nobody knows":     {args: []string{"init", "--store", "redis://h"}, want: []string{`--store: scheme "redis" is unknown: use ` + forms, "leasectl init --help"}},
		"a drive letter":            {args: []string{"init", "--store", `C:\leases.db`}, want: []string{"--store: has no known scheme: use " + forms, "leasectl init --help"}},
		"cosmos without slashes":    {args: []string{"init", "--store", "cosmos:db"}, want: []string{"--store: cosmos: write cosmos://ACCOUNT/DATABASE/CONTAINER", "leasectl init --help"}},
		"cosmos without an account": {args: []string{"init", "--store", "cosmos:///db/c"}, env: []string{key}, want: []string{"--store: cosmos: has no account: write cosmos://ACCOUNT/DATABASE/CONTAINER, or set COSMOS_CONNECTION_STRING", "leasectl init --help"}},
		"cosmos with two accounts":  {args: []string{"init", "--store", "cosmos://a/db/c"}, env: []string{connection}, want: []string{"--store: cosmos: COSMOS_CONNECTION_STRING names the account: write cosmos:///DATABASE/CONTAINER, or set COSMOS_KEY instead", "leasectl init --help"}},
		"cosmos with two keys":      {args: []string{"init", "--store", "cosmos:///db/c"}, env: []string{key, connection}, want: []string{"--store: cosmos: COSMOS_KEY and COSMOS_CONNECTION_STRING are set: set only one", "leasectl init --help"}},
		"no kind to plan for":       {args: []string{"plan", "--every", "5m"}, want: []string{"no store: name its kind with --store cosmos or --store mongo", "--store cosmos"}},
		"a kind without a price":    {args: []string{"plan", "--every", "5m", "--store", "sqlite:x.db"}, want: []string{"--store: a SQLite file costs nothing: give --store cosmos or --store mongo", "leasectl plan --help"}},
		"a kind nobody knows":       {args: []string{"plan", "--every", "5m"}, env: []string{"LEASECTL_STORE=redis"}, want: []string{"LEASECTL_STORE: has no known kind: give --store cosmos or --store mongo", "leasectl plan --help"}},
		"everything in a plan": {
			args: []string{"plan", "--store", "redis", "--workers", "0", "--consistency", "weak", "--lead", "6m", "--step", "-1s", "--output", "xml", "--zone", "UTC"},
			want: []string{
				`--workers "0": must be a whole number from 1 to 100000`,
				`--consistency "weak": must be one of ["strong" "bounded-staleness" "session" "consistent-prefix" "eventual"]`,
				`--output "xml": must be one of ["table" "json"]`,
				"--store: has no known kind: give --store cosmos or --store mongo",
				"no schedule: give --every (such as 5m) or --cron (such as '0 * * * *')",
				`--zone "UTC": goes with --cron only; slots of --every are the same in all zones`,
				"--lead is 6m0s: must be 0 (default) … 5m0s",
				"--step is -1s: must be 0 (default) … 5m0s",
				"leasectl plan --help",
			},
		},
		"sqlite without a path":  {args: []string{"init", "--store", "sqlite:"}, want: []string{"--store: sqlite: has no path: use sqlite:PATH", "leasectl init --help"}},
		"an unknown command":     {args: []string{"innit"}, want: []string{`unknown command "innit" for "leasectl"`, "leasectl init"}},
		"an unknown subcommand":  {args: []string{"inspect", "slot"}, want: []string{`unknown command "slot" for "leasectl inspect"`, "leasectl inspect slots"}},
		"an unknown flag":        {args: []string{"version", "--verbose"}, want: []string{"unknown flag: --verbose", "leasectl version --help"}},
		"an argument too many":   {args: []string{"version", "x"}, want: []string{`unexpected argument "x" for "leasectl version"`, "leasectl version --help"}},
		"a URI that isn't one":   {args: []string{"version", "mongodb:/jane:pw@h"}, want: []string{`unexpected argument "mongodb:/…" for "leasectl version"`, "leasectl version --help"}},
		"a URI before --":        {args: with("mongodb//jane:pw@h", "--", "true"), want: []string{`unexpected argument "mongodb//…": put the command after --`, "leasectl run --help"}},
		"a key as a command":     {args: []string{"COSMOS_KEY=pw"}, want: []string{`unknown command "COSMOS_KEY=…" for "leasectl"`, "leasectl --help"}},
		"a key as a flag":        {args: []string{"version", "--pw:pw@h=pw"}, want: []string{"unknown flag: …", "leasectl version --help"}},
		"a URI as letters":       {args: []string{"version", "-mongodb:/jane:pw@h"}, want: []string{`unknown shorthand flag: "m" in -mongodb:/…`, "leasectl version --help"}},
		"a bad output":           {args: []string{"version", "--output", "xml"}, want: []string{`--output "xml": must be one of ["text" "json"]`, "leasectl version --help"}},
		"no command":             {args: ok, want: []string{"no command: put it after --", "leasectl run --help"}},
		"a command without --":   {args: with("true"), want: []string{`unexpected argument "true": put the command after --`, "leasectl run --help"}},
		"an argument before --":  {args: with("x", "--", "true"), want: []string{`unexpected argument "x": put the command after --`, "leasectl run --help"}},
		"both schedules":         {args: with("--cron", "0 * * * *", "--", "true"), want: []string{"--every and --cron: give only one of them", "leasectl run --help"}},
		"a zone without cron":    {args: with("--zone", "Europe/Berlin", "--", "true"), want: []string{`--zone "Europe/Berlin": goes with --cron only; slots of --every are the same in all zones`, "leasectl run --help"}},
		"too long a grace":       {args: with("--stop-grace", "150s", "--", "true"), want: []string{`--stop-grace "150s": must be less than 2m30s, half of the shortest slot`, "leasectl run --help"}},
		"no margin and failover": {args: with("--margin", "0s", "--failover-within", "0", "--", "true"), want: []string{`--margin "0s": must not be 0; leave the option out for the default`, `--failover-within "0": must not be 0; leave the option out for the default`, "leasectl run --help"}},
		"once without need":      {args: with("--timeout", "3s", "--conflict-exit-code", "0", "--", "true"), want: []string{`--timeout "3s": goes with --once only`, `--conflict-exit-code "0": goes with --once only`, "leasectl run --help"}},
		"a code that is none":    {args: with("--once", "--conflict-exit-code", "256", "--", "true"), want: []string{`--conflict-exit-code "256": must be a whole number from 0 to 255`, "leasectl run --help"}},
		"once and for ever": {
			args: with("--once", "--continuous", "--join-mid-slot", "--priority", "3", "--group", "g", "--", "true"),
			want: []string{
				"--continuous: not with --once, which ends with its command",
				"--join-mid-slot: not with --once, which claims what is left of the current slot anyway",
				"--priority: not with --once, which claims at once, whatever its turn would be",
				"--group: not with --once, which shares its lease with nobody",
				`--continuous is set, and --group is "g": a group's lease can't be extended: set only one of them`,
				"leasectl run --help",
			},
		},
		"a group that works once": {
			args: with("--once-per-slot", "--group", "g", "--continuous", "--", "true"),
			want: []string{
				`--once-per-slot is set, and --group is "g": a group works in each slot together: set only one of them`,
				"--once-per-slot is set, and --continuous too: a job of each slot doesn't go on into the next: set only one of them",
				"leasectl run --help",
			},
		},
		"attempts of what isn't tried again": {args: with("--max-attempts", "3", "--min-retry", "5s", "--run-missed", "--", "true"), want: []string{`--max-attempts "3": goes with --once-per-slot only`, `--min-retry "5s": goes with --once-per-slot only`, "--run-missed: goes with --once-per-slot only", "leasectl run --help"}},
		"no attempts":                        {args: with("--once-per-slot", "--max-attempts", "0", "--", "true"), want: []string{`--max-attempts "0": must be a whole number from 1 to 1000000`, "leasectl run --help"}},
		"once in too short a slot": {
			args: []string{"run", "--store", "sqlite:x.db", "--worker-type", "t", "--every", "150ms", "--once-per-slot", "--", "true"},
			want: []string{"--every or --cron makes slots of 150ms, and --once-per-slot is set: they are too short for others to try again: must be at least 160ms", "leasectl run --help"},
		},
		"once, next to others": {
			args: with("--once-per-slot", "--lead", "31s", "--margin", "7s", "--stop-grace", "16s", "--", "true"),
			want: []string{
				"--lead is 31s: must be at most 30s with --once-per-slot, half of the --failover-within that comes with it (1m0s): set that as well for a longer one",
				`--stop-grace "16s": must be at most a quarter of --failover-within, and 5m (15s): no more is ever sure to be left`,
				"leasectl run --help",
			},
		},
		"a failover next to others": {
			args: with("--failover-within", "10s", "--lead", "6s", "--margin", "1300ms", "--stop-grace", "2600ms", "--", "true"),
			want: []string{
				"--failover-within is 10s: must be at least 8 × --margin (10.4s), so that a part of the slot can be extended in time, and at most half of the shortest slot (2m30s)",
				"--lead is 6s: must be at most half of --failover-within (5s), which is lost when a worker dies that has claimed the next slot",
				`--stop-grace "2600ms": must be at most a quarter of --failover-within, and 5m (2.5s): no more is ever sure to be left`,
				"leasectl run --help",
			},
		},
		"a failover in a plan":  {args: []string{"plan", "--store", "cosmos", "--every", "1m", "--failover-within", "31s", "--lead", "16s"}, want: []string{"--failover-within is 31s: must be at least 8 × --margin (2s), so that a part of the slot can be extended in time, and at most half of the shortest slot (30s)", "--lead is 16s: must be at most half of --failover-within (15.5s), which is lost when a worker dies that has claimed the next slot", "leasectl plan --help"}},
		"too short an interval": {args: []string{"run", "--store", "sqlite:x.db", "--worker-type", "t", "--every", "1ms", "--", "true"}, want: []string{`--every "1ms": the interval must be at least 100ms`, "leasectl run --help"}},
		"an override of nothing": {args: []string{"override", "--store", "sqlite:x.db"}, want: []string{
			"--worker-type is missing: name the one whose record is to be overridden",
			"--seq is missing: give the number of the newest record, as leasectl inspect slots shows it", "leasectl override --help",
		}},
		"an override of bad values": {args: []string{"override", "--store", "sqlite:x.db", "--worker-type", "t", "--seq", "0", "--done-until", "noon", "--reason", ""}, want: []string{
			`--seq "0": must be a whole number from 1 to 9007199254740990`, `--done-until "noon": must be a time such as 2026-03-02T12:00:00Z`,
			`--reason "": must not be empty; leave the option out for the default`, "leasectl override --help",
		}},
		"an interval of watching":     {args: []string{"inspect", "slots", "--store", "sqlite:x.db", "--interval", "2s"}, want: []string{`--interval "2s": goes with --watch only`, "leasectl inspect slots --help"}},
		"a bad interval of watching":  {args: []string{"inspect", "slots", "--store", "sqlite:x.db", "--interval", "0s"}, want: []string{`--interval "0s": must be from 100ms to 1h0m0s`, "leasectl inspect slots --help"}},
		"a URL of a relative path":    {args: []string{"init", "--store", "sqlite://x.db"}, want: []string{"--store: write sqlite:x.db for a relative path, sqlite:/x.db for an absolute one", "leasectl init --help"}},
		"a URL of an absolute path":   {args: []string{"init", "--store", "sqlite:///var/x.db"}, want: []string{"--store: write sqlite:var/x.db for a relative path, sqlite:/var/x.db for an absolute one", "leasectl init --help"}},
		"a ledger in memory":          {args: []string{"init", "--store", "sqlite::memory:"}, want: []string{"--store: a ledger in memory can't be shared by processes: name a file", "leasectl init --help"}},
		"a store of the demo":         {args: []string{"demo", "--store", "sqlite:x.db"}, want: []string{`--store: means nothing to "leasectl demo"`, "leasectl demo --help"}},
		"a store of the version":      {args: []string{"--store", "sqlite:x.db", "version"}, want: []string{`--store: means nothing to "leasectl version"`, "leasectl version --help"}},
		"a store of completion":       {args: []string{"completion", "bash", "--store", "sqlite:x.db"}, want: []string{`--store: means nothing to "leasectl completion bash"`, "leasectl completion bash --help"}},
		"a store of help":             {args: []string{"help", "--store", "sqlite:x.db", "run"}, want: []string{`--store: means nothing to "leasectl help"`, "leasectl help --help"}},
		"a URI as a help topic":       {args: []string{"help", "mongodb:/jane:pw@h"}, want: []string{`unknown help topic "mongodb:/…"`, "leasectl --help"}},
		"an unknown help topic":       {args: []string{"help", "nosuch"}, want: []string{`unknown help topic "nosuch"`, "leasectl --help"}},
		"an unknown help topic below": {args: []string{"help", "inspect", "nosuch"}, want: []string{`unknown help topic "nosuch"`, "leasectl --help"}},
		"every option of a schedule": {
			args: []string{"run", "--store", "sqlite:x.db", "--worker-type", "t", "--every", "1ms", "--cron", "* *", "--zone", "Mars", "--margin", "1h", "--", "true"},
			want: []string{
				"--every and --cron: give only one of them",
				`--every "1ms": the interval must be at least 100ms`,
				`--cron "* *": expected exactly 5 fields, found 2: [* *]`,
				`--zone "Mars": unknown to the tz database (names look like Europe/Berlin)`,
				"--margin is 1h0m0s: must be at least 10ms and less than half of the shortest slot (100ms)",
				"leasectl run --help",
			},
		},
		"a bad spec in a good zone":  {args: []string{"run", "--store", "sqlite:x.db", "--worker-type", "t", "--cron", "61 * * * *", "--zone", "Europe/Berlin", "--margin", "1h", "--", "true"}, want: []string{`--cron "61 * * * *": end of range (61) above maximum (59): 61`, "leasectl run --help"}},
		"a margin too long for cron": {args: []string{"run", "--store", "sqlite:x.db", "--worker-type", "t", "--cron", "*/5 * * * *", "--margin", "3m", "--", "true"}, want: []string{"--margin is 3m0s: must be at least 10ms and less than half of the shortest slot (5m0s)", "leasectl run --help"}},
		"a group that isn't UTF-8":   {args: with("--group", "eu\xff", "--", "true"), want: []string{`--group is "eu\xff": must be UTF-8`, "leasectl run --help"}},
		"too few slots":              {args: []string{"demo", "--slots", "2"}, want: []string{`--slots "2": must be a whole number from 6 to 1000`, "leasectl demo --help"}},
		"everything at once": {
			args: []string{
				"run", "--store", "redis:", "--every", "soon", "--priority", "8", "--worker-type", "a b", "--instance-id", "", "--group", strings.Repeat("g", 257),
				"--tie-break", "coin", "--lead", "6m", "--step", "-1s", "--margin", "1ms", "--log-level", "loud", "--log-format", "xml", "--", "true",
			},
			want: []string{
				`--every "soon": must be a duration such as 500ms, 90s, 5m or 1h30m`,
				`--worker-type "a b": character ' ' at position 2: use 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit`,
				`--instance-id "": must not be empty; leave the option out for the default`,
				`--tie-break "coin": want sticky, rotate, random or spread`,
				`--log-level "loud": must be one of ["debug" "info" "warn" "error"]`,
				`--log-format "xml": must be one of ["text" "json"]`,
				`--store: scheme "redis" is unknown: use ` + forms,
				"--group has 257 bytes: at most 256 allowed",
				"--priority is 8: must be 0 (highest) … 7",
				"--margin is 1ms: must be at least 10ms and less than half of the shortest slot (8784h0m0s)",
				"--lead is 6m0s: must be 0 (default) … 5m0s",
				"--step is -1s: must be 0 (default) … 5m0s",
				"leasectl run --help",
			},
		},
		"nothing that is needed": {args: []string{"run"}, want: []string{
			"no store: name one with --store or LEASECTL_STORE",
			"no schedule: give --every (such as 5m) or --cron (such as '0 * * * *')",
			"--worker-type is missing: give the name that workers compete for",
			"no command: put it after --",
			"--store sqlite:leases.db, or export LEASECTL_STORE=mongodb://…",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			got := leasectl(t, test.env, test.args...)
			last := len(test.want) - 1
			want := "leasectl: " + strings.Join(test.want[:last], "\nleasectl: ") + "\ntry: " + test.want[last] + "\n"
			if got.code != exit.Usage || got.stdout != "" || got.stderr != want {
				t.Errorf("leasectl %q = %d\n%s%swant %d\n%s", test.args, got.code, got.stdout, got.stderr, exit.Usage, want)
			}
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Errorf("leasectl %q left %v behind, %v", test.args, left, err)
			}
		})
	}
}

func TestEveryKindOfFailureHasItsExitCode(t *testing.T) {
	for err, want := range map[error]int{
		store.ErrRefused:                 exit.Refused,
		store.ErrDenied:                  exit.Denied,
		fs.ErrPermission:                 exit.Denied,
		store.ErrMissing:                 exit.Missing,
		store.ErrInvalid:                 exit.Usage,
		store.ErrThrottled:               exit.Unreachable,
		&net.DNSError{Err: "no host"}:    exit.Unreachable,
		errors.New("connection refused"): exit.Unreachable,
	} {
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		if got := a.report(advice.ForStore(storeuri.Target{Scheme: "mongodb"}, fmt.Errorf("now: %w", err))); got != want {
			t.Errorf("report(advice.ForStore(%v)) = %d, want %d", err, got, want)
		}
		if want := "leasectl: now: " + err.Error() + "\n"; !strings.HasPrefix(stderr.String(), want) {
			t.Errorf("report(advice.ForStore(%v)) wrote %q, want %q first", err, stderr.String(), want)
		}
	}
	if got := (&app{stderr: &bytes.Buffer{}}).report(errors.New("other")); got != exit.Failure {
		t.Errorf("report(other) = %d, want %d", got, exit.Failure)
	}
}

func TestAFileThatIsNoLedgerIsRefusedAndLeftAsItIs(t *testing.T) {
	for name, content := range map[string]string{
		"text":    "do not lose this\n",
		"garbage": "SQLite format 3\x00" + strings.Repeat("garbage ", 600),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mine")
			want := output{exit.Refused, "", "leasectl: sqlite:" + path + ": store refused: not a SQLite database\ntry: choose another file\n"}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"init"}, {"inspect", "slots"}, {"run", "--worker-type", "t", "--every", "1s", "--", "true"},
			} {
				got := leasectl(t, nil, append([]string{"--store", "sqlite:" + path}, args...)...)
				if got != want {
					t.Errorf("leasectl %v = %+v, want %+v", args, got, want)
				}
				if after, err := os.ReadFile(path); err != nil || string(after) != content {
					t.Errorf("leasectl %v changed the file: %q, %v", args, after, err)
				}
				if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
					t.Errorf("leasectl %v left %v, %v", args, left, err)
				}
			}
		})
	}
}

func TestACorruptLedgerIsRefusedWithSoundAdvice(t *testing.T) {
	l, storeArg := newLedger(t)
	if err := errors.Join(l.Append(t.Context(), recordtest.Grant(1, 0, "a")), l.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(storeArg, "sqlite:")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096 // the first, which tells what the file is, stays whole
	for i := page; i < len(content); i++ {
		content[i] = 0xa5
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	want := output{exit.Refused, "", "leasectl: " + storeArg + ": store refused: the file is corrupt\ntry: stop all its workers first, then remove it (a new ledger starts)\n"}
	if got := leasectl(t, nil, "inspect", "slots", "--store", storeArg); got != want {
		t.Errorf("leasectl inspect slots = %+v, want %+v", got, want)
	}
}

func TestALedgerThatIsNotThereIsNotCreatedByLooking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	want := "try: leasectl init --store sqlite:" + path + "\n"
	for _, args := range [][]string{{"inspect", "slots"}, {"inspect", "slots", "--watch"}} {
		got := leasectl(t, []string{"LEASECTL_STORE=sqlite:" + path}, args...)
		if got.code != exit.Missing || !strings.HasSuffix(got.stderr, want) {
			t.Errorf("leasectl %v = %d, %q, want %d and %q", args, got.code, got.stderr, exit.Missing, want)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("leasectl %v made the file: %v", args, err)
		}
	}
}

func TestAServerThatRefusesConnectionsIsUnreachable(t *testing.T) {
	// Nobody listens there, and nobody is given this port by chance.
	const address = "127.0.0.1:1"
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"init", "--timeout", "300ms"}, {"inspect", "slots", "--timeout", "300ms"}} {
		var got output
		// On a busy machine the time may pass before the driver has dialled once.
		procs.Eventually(t, "a connection is refused", func() bool {
			got = leasectl(t, []string{"LEASECTL_STORE=mongodb://" + address + "/jobs"}, args...)
			return strings.Contains(got.stderr, "refused")
		})
		if got.code != exit.Unreachable || !strings.Contains(got.stderr, ": no server found: "+address+": connection refused\n") || !strings.HasSuffix(got.stderr, "try: check that the server runs and that host and port are right\n") {
			t.Errorf("leasectl %v = %d, %q, want %d", args, got.code, got.stderr, exit.Unreachable)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestACommandThatCanNotBeRunIsToldAtTheStart(t *testing.T) {
	_, storeArg := newLedger(t)
	plain := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"no-such-command-anywhere", plain, filepath.Join(t.TempDir(), "nothing")} {
		got := leasectl(t, nil, "run", "--store", storeArg, "--worker-type", "t", "--every", "1s", "--", command)
		if got.code != exit.Command || !strings.HasPrefix(got.stderr, fmt.Sprintf("leasectl: command %q: ", command)) {
			t.Errorf("leasectl run -- %s = %d, %q, want %d", command, got.code, got.stderr, exit.Command)
		}
	}
}

func TestInitSaysWhatItDid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	store := "sqlite:" + path
	for _, want := range []string{
		"created the ledger " + store + "\n",
		"the ledger " + store + " was there already, without records\n",
		"the ledger " + store + " was there already, without records\n",
	} {
		if got := leasectl(t, nil, "init", "--store", store); got != (output{stdout: want}) {
			t.Errorf("leasectl init = %+v, want %q", got, want)
		}
	}
	l, storeArg := newLedger(t)
	if err := l.Append(t.Context(), recordtest.Grant(1, 0, "a")); err != nil {
		t.Fatal(err)
	}
	want := output{stdout: "the ledger " + storeArg + " was there already, with the worker types export\n"}
	if got := leasectl(t, nil, "init", "--store", storeArg); got != want {
		t.Errorf("leasectl init = %+v, want %+v", got, want)
	}
	if got := leasectl(t, nil, "init", "--store", "sqlite:"+filepath.Join(path, "below", "leases.db")); got.code != exit.Unreachable {
		t.Errorf("leasectl init below a file = %+v, want code %d", got, exit.Unreachable)
	}
	dir := filepath.Join(t.TempDir(), "nodir")
	got := leasectl(t, nil, "init", "--store", "sqlite:"+filepath.Join(dir, "leases.db"))
	if want := "try: create the directory " + dir + " first\n"; got.code != exit.Missing || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("leasectl init in a directory that isn't there = %+v, want code %d and %q", got, exit.Missing, want)
	}
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want = output{stdout: "created the ledger sqlite:" + filepath.Join(here, "x.db") + "\n"}
	if got := leasectl(t, nil, "init", "--store", "sqlite:x.db"); got != want {
		t.Errorf("leasectl init of a relative path = %+v, want %+v", got, want)
	}
}

// full is an output to which nothing can be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCanNotBeWrittenIsAFailure(t *testing.T) {
	l, storeArg := newLedger(t)
	if err := l.Append(t.Context(), recordtest.Grant(1, 0, "a")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"version"},
		{"version", "--output", "json"},
		{"--help"},
		{"help", "exit-codes"},
		{"init", "--store", storeArg},
		{"plan", "--store", "mongo", "--every", "5m"},
		{"inspect", "slots", "--store", storeArg, "--output", "json"},
		{"inspect", "slots", "--store", storeArg, "--watch"},
	} {
		var stderr bytes.Buffer
		code := execute(t.Context(), args, nil, strings.NewReader(""), full{}, &stderr)
		const want = "leasectl: the output can't be written: no space left on device\n"
		if code != exit.Failure || !strings.HasSuffix(stderr.String(), want) { // (cobra repeats the reason after help)
			t.Errorf("leasectl %q = %d, %q, want %d, %q", args, code, stderr.String(), exit.Failure, want)
		}
	}
}
