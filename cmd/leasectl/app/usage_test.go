package app

import (
	"os"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

func TestWhatIsWrongIsToldInOneLineEachWithAHint(t *testing.T) {
	forms := storeuri.Forms()
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
		"a scheme nobody knows":     {args: []string{"init", "--store", "consul://h"}, want: []string{`--store: scheme "consul" is unknown: use ` + forms, "leasectl init --help"}},
		"a store of etcd":           {args: []string{"init", "--store", "etcd://u:c4nary@h/x"}, want: []string{"--store: this leasectl was built without the store of etcd: build the one in store/etcd/leasectl", "in a clone of slotlease: cd store/etcd && go install ./leasectl"}},
		"etcd with TLS, in the env": {args: []string{"status"}, env: []string{"LEASECTL_STORE=etcds://h/x"}, want: []string{"LEASECTL_STORE: this leasectl was built without the store of etcd: build the one in store/etcd/leasectl", "in a clone of slotlease: cd store/etcd && go install ./leasectl"}},
		"a store of Kubernetes":     {args: []string{"init", "--store", "k8s:jobs"}, want: []string{"--store: this leasectl was built without the store of Kubernetes: build the one in store/kubernetes/leasectl", "in a clone of slotlease: cd store/kubernetes && go install ./leasectl"}},
		"Kubernetes to copy to":     {args: []string{"copy", "--store", "sqlite:x.db", "--worker-type", "t", "--to", "k8s:jobs"}, want: []string{"--to: this leasectl was built without the store of Kubernetes: build the one in store/kubernetes/leasectl", "in a clone of slotlease: cd store/kubernetes && go install ./leasectl"}},
		"two faults of a URI": {args: []string{"init", "--store", "redis://h/x?foo=1"}, want: []string{
			"redis: open: uri: the database must be a number such as 0; uri: parameter foo is unknown: use prefix, replicas, replicaWait, serverSkew, unsafeNoPersistence or insecureSkipVerify",
			"redis://HOST/DATABASE, as in leasectl --help",
		}},
		"a database that is missing": {args: []string{"init", "--store", "postgres://jane:pw@h"}, want: []string{
			"postgres: open: uri: the database is missing: postgres://HOST/DATABASE", "postgres://HOST/DATABASE, as in leasectl --help",
		}},
		"a drive letter":            {args: []string{"init", "--store", `C:\leases.db`}, want: []string{"--store: has no known scheme: use " + forms, "leasectl init --help"}},
		"cosmos without slashes":    {args: []string{"init", "--store", "cosmos:db"}, want: []string{"--store: cosmos: write cosmos://ACCOUNT/DATABASE/CONTAINER", "leasectl init --help"}},
		"cosmos without an account": {args: []string{"init", "--store", "cosmos:///db/c"}, env: []string{key}, want: []string{"--store: cosmos: has no account: write cosmos://ACCOUNT/DATABASE/CONTAINER, or set COSMOS_CONNECTION_STRING", "leasectl init --help"}},
		"cosmos with two accounts":  {args: []string{"init", "--store", "cosmos://a/db/c"}, env: []string{connection}, want: []string{"--store: cosmos: COSMOS_CONNECTION_STRING names the account: write cosmos:///DATABASE/CONTAINER, or set COSMOS_KEY instead", "leasectl init --help"}},
		"cosmos with two keys":      {args: []string{"init", "--store", "cosmos:///db/c"}, env: []string{key, connection}, want: []string{"--store: cosmos: COSMOS_KEY and COSMOS_CONNECTION_STRING are set: set only one", "leasectl init --help"}},
		"no kind to plan for":       {args: []string{"plan", "--every", "5m"}, want: []string{"no store: name its kind, --store cosmos, mongo, s3, azblob or kubernetes", "--store cosmos"}},
		"a kind without a price":    {args: []string{"plan", "--every", "5m", "--store", "sqlite:x.db"}, want: []string{"--store: a SQLite file costs nothing: give --store cosmos, mongo, s3, azblob or kubernetes", "leasectl plan --help"}},
		"a kind nobody knows":       {args: []string{"plan", "--every", "5m"}, env: []string{"LEASECTL_STORE=consul"}, want: []string{"LEASECTL_STORE: has no known kind: give --store cosmos, mongo, s3, azblob or kubernetes", "leasectl plan --help"}},
		"everything in a plan": {
			args: []string{"plan", "--store", "redis", "--workers", "0", "--consistency", "weak", "--lead", "6m", "--step", "-1s", "--output", "xml", "--zone", "UTC"},
			want: []string{
				`--workers "0": must be a whole number from 1 to 100000`,
				`--consistency "weak": must be one of ["strong" "bounded-staleness" "session" "consistent-prefix" "eventual"]`,
				`--output "xml": must be one of ["table" "json"]`,
				"--store: a server of your own bills no requests, so that there is nothing to estimate; give --store cosmos, mongo, s3, azblob or kubernetes",
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
		"a URL of a relative path":    {args: []string{"init", "--store", "sqlite://x.db"}, want: []string{"--store: sqlite: write sqlite:x.db for a relative path, sqlite:/x.db for an absolute one", "leasectl init --help"}},
		"a URL of an absolute path":   {args: []string{"init", "--store", "sqlite:///var/x.db"}, want: []string{"--store: sqlite: write sqlite:var/x.db for a relative path, sqlite:/var/x.db for an absolute one", "leasectl init --help"}},
		"a ledger in memory":          {args: []string{"init", "--store", "sqlite::memory:"}, want: []string{"--store: sqlite: a ledger in memory can't be shared by processes: name a file", "leasectl init --help"}},
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
				"run", "--store", "consul:", "--every", "soon", "--priority", "8", "--worker-type", "a b", "--instance-id", "", "--group", strings.Repeat("g", 257),
				"--tie-break", "coin", "--lead", "6m", "--step", "-1s", "--margin", "1ms", "--log-level", "loud", "--log-format", "xml", "--", "true",
			},
			want: []string{
				`--every "soon": must be a duration such as 500ms, 90s, 5m or 1h30m`,
				`--worker-type "a b": character ' ' at position 2: use 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit`,
				`--instance-id "": must not be empty; leave the option out for the default`,
				`--tie-break "coin": want sticky, rotate, random or spread`,
				`--log-level "loud": must be one of ["debug" "info" "warn" "error"]`,
				`--log-format "xml": must be one of ["text" "json"]`,
				`--store: scheme "consul" is unknown: use ` + forms,
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
