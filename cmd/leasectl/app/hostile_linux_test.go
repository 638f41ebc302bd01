package app

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// evil has what must reach no terminal: a title, a hyperlink, C0, C1, DEL, bidirectional and
// zero-width characters, separators of lines, and what would forge lines of our own.
const evil = "evil\x1b]0;owned\a\x1b[2J\x1b]8;;http://h\x1b\\link\x1b]8;;\x1b\\\u009b31m\u009d0;x\u009c\x7f\b\r\u202e\u2066\u200b\u200d\ufeff\u2028\u2029\u3164\nleasectl: owned\ntry: rm -rf ~"

// evilTypes are names that no worker type may have, and a shell would obey.
var evilTypes = []string{
	"x\x1b]0;owned\a", "$(touch owned)", "`touch owned`", "a;touch owned", "--yes", "exp\u202etro", "two\n:4\nlines\tand a description", "", strings.Repeat("long", 200), "\xff\x9b",
}

// hostileLedger is a ledger full of what another program may have written, and its --store.
// The worker type "export" has valid records with evil labels, and t has no others.
func hostileLedger(t *testing.T) string {
	t.Helper()
	l, storeArg := newLedger(t)
	now := storeTime(t, l)
	for i, kind := range []store.Kind{store.KindGrant, "odd\x1b[2J\nrisk: none", store.KindGrant} {
		for _, workerType := range []string{"export", "t"} {
			r := recordtest.Grant(int64(i+1), 0, evil)
			r.WorkerType, r.Kind, r.Group, r.Schedule, r.Metadata = workerType, kind, evil, "every 5m"+evil, evil
			r.Worker.Host, r.Worker.Version = evil, evil
			begin := now.Add(time.Duration(i-30) * time.Minute)
			r.SlotStart, r.SlotEnd, r.WindowStart, r.WindowEnd, r.Token = begin, begin.Add(time.Minute), begin, begin.Add(time.Minute), begin.UnixMilli()
			r.FixedAt, r.ReadAt, r.Claim = begin, begin, r.Claim[:10]+string(rune('a'+i))
			if i == 2 && workerType == "export" {
				r.WindowEnd, r.Claim = begin.AddDate(1, 0, 0), "evil\x1b[2J\u202e"
			}
			must(t, l.Append(t.Context(), r))
		}
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(storeArg, "sqlite:"))
	must(t, err)
	defer db.Close()
	for _, name := range evilTypes {
		_, err := db.ExecContext(t.Context(), `INSERT INTO WorkerLeases (workerType, seq, kind, instanceId, "group", claim, windowStart, windowEnd, token) VALUES (?, 1, 'grant', ?, '', 'c', ?, ?, 1)`,
			name, evil, now.UnixMilli(), now.AddDate(1, 0, 0).UnixMilli())
		must(t, err)
	}
	// Times that no record may have, in the envelope and elsewhere.
	for seq, ms := range []int64{253402300800000, -62135596800001, 1<<63 - 1, -1 << 63} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO WorkerLeases (workerType, seq, kind, instanceId, "group", claim, windowStart, windowEnd, token, readAt, slotStart, slotEnd, fixedAt, doneUntil)
			VALUES ('late', ?, 'grant', 'a', '', 'c', 1, 2, 1, ?, ?, ?, ?, ?), ('late', ?, 'grant', 'a', '', 'c', 1, ?, 1, NULL, ?, ?, ?, ?), ('soon', ?, 'grant', 'a', '', 'c', 1, ?, ?, 1, ?, ?, ?, ?)`,
			2*seq+1, ms, ms, ms, ms, ms, 2*seq+2, ms, ms, ms, ms, ms, seq+1, 2+seq, 1+seq, ms, ms, ms, ms)
		must(t, err)
	}
	return storeArg
}

// wantClean demands that what leasectl wrote can do nothing to a terminal, and forges no lines.
func wantClean(t *testing.T, what, text string) {
	t.Helper()
	shown := strings.Map(func(r rune) rune {
		if r == '\n' {
			return ' '
		}
		return r
	}, text)
	if !utf8.ValidString(text) || strings.IndexFunc(shown, display.Hidden) >= 0 {
		t.Errorf("%s wrote %q, want what can be shown", what, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "leasectl: owned") || strings.HasPrefix(line, "try: rm") || strings.HasPrefix(line, "risk: none") {
			t.Errorf("%s wrote the forged line %q in %q", what, line, text)
		}
		if try, ok := strings.CutPrefix(line, "try: "); ok && (strings.ContainsAny(try, "$`;") || strings.Contains(try, "--yes")) {
			t.Errorf("%s advises to try %q", what, try)
		}
	}
}

func TestWhatStandsInALedgerDoesNothingToATerminal(t *testing.T) {
	storeArg := hostileLedger(t)
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args []string
		code int
		want string // in the output, standard and error
	}{
		{[]string{"inspect", "slots", "--worker-type", "export"}, exit.OK, "try: leasectl override --worker-type export --seq 3 --store " + storeArg + "\n"},
		{[]string{"inspect", "slots", "--worker-type", "export", "--output", "json"}, exit.OK, `"instanceId": "evil\u001b]0;owned\u0007`},
		{[]string{"inspect", "slots", "--worker-type", "exprot"}, exit.Usage, "try: --worker-type export\n"},
		{[]string{"inspect", "slots", "--worker-type", "exprot"}, exit.Usage, `the ledger has export, late, soon, t, and invalid ones: "", "$(touch owned)", `},
		{[]string{"inspect", "slots"}, exit.Usage, "the ledger has 4 worker types, name one with --worker-type: export, late, soon, t, and invalid ones"},
		{[]string{"inspect", "slots"}, exit.Usage, `"exp\u202etro"`},
		{[]string{"inspect", "slots", "--worker-type", "$(touch owned)"}, exit.Usage, ""},
		{[]string{"override", "--worker-type", "export", "--seq", "2", "--yes"}, exit.Failure, "try: leasectl inspect slots --worker-type export --store " + storeArg + "\n"},
		{[]string{"override", "--worker-type", "exprot", "--seq", "2", "--yes"}, exit.Usage, `and invalid ones`},
		{[]string{"override", "--worker-type", "export", "--seq", "3", "--yes"}, exit.OK, "wrote record 4"},
		{[]string{"init"}, exit.OK, "with the worker types export, late, soon, t, and invalid ones: "},
		{[]string{"__complete", "inspect", "slots", "--worker-type", ""}, exit.OK, "export\nlate\nsoon\nt\n:4\n"},
		{[]string{"__completeNoDesc", "override", "--worker-type", "e"}, exit.OK, "export\n:4\n"},
		{[]string{"__completeNoDesc", "override", "--worker-type", "$"}, exit.OK, ":4\n"},
	} {
		got := leasectl(t, []string{"LEASECTL_STORE=" + storeArg}, c.args...)
		if both := got.stdout + got.stderr; got.code != c.code || !strings.Contains(both, c.want) {
			t.Errorf("leasectl %q = %+v, want %d and %q", c.args, got, c.code, c.want)
		}
		wantClean(t, "leasectl "+strings.Join(c.args, " "), got.stdout+got.stderr)
		if strings.HasPrefix(c.args[0], "__complete") && got.stdout != c.want {
			t.Errorf("leasectl %q completes %q, want %q", c.args, got.stdout, c.want)
		}
	}
	for _, workerType := range []string{"late", "soon"} {
		s := inspected(t, nil, "--store", storeArg, "--worker-type", workerType)
		if poison := s.Slots[0].State == history.Poison && strings.Contains(s.Slots[0].Note, "must be in the years 1 to 9999"); poison != (workerType == "late") || len(s.Slots) < 4 {
			t.Errorf("inspect slots --worker-type %s = %+v", workerType, s)
		}
	}
	var s inspect.Snapshot
	got := leasectl(t, nil, "inspect", "slots", "--store", storeArg, "--worker-type", "t", "--output", "json")
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || len(s.Slots) < 3 || s.Slots[0].InstanceID != evil || s.Slots[0].Group != evil {
		t.Errorf("inspect slots --output json = %s, %v, want the labels as they are", got.stdout, err)
	}
	if _, err := os.Stat("owned"); err == nil {
		t.Error("a file was made: something was obeyed")
	}
}

func TestWhatStandsInALedgerDoesNothingToALog(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			p := startRun(t, hostileLedger(t), "a", []string{"--log-format", format}, "sh", "-c", "echo works")
			p.await("works")
			p.awaitMatch("schedules? (differ|mismatch)")
			_ = p.cmd.Process.Signal(os.Interrupt)
			if code := p.wait(); code != exit.OK {
				t.Errorf("leasectl run on a hostile ledger ended with %d, want 0", code)
			}
			wantClean(t, "leasectl run", p.output())
			if format == "text" {
				if !strings.Contains(p.output(), "schedules differ: ours is \"every 1s\", that of \"evil\\x1b]0;owned") {
					t.Errorf("leasectl run wrote %s, want the holder's name", p.output())
				}
				return
			}
			for line := range strings.Lines(p.output()) {
				var mismatch struct{ Message, Holder, Theirs string }
				_ = json.Unmarshal([]byte(line), &mismatch) // or the command's
				if mismatch.Message == "schedule mismatch" && (mismatch.Holder != evil || mismatch.Theirs != "every 5m"+evil) {
					t.Errorf("leasectl run logs %q, want the holder and the schedule as they are", line)
				}
			}
		})
	}
}

// A program that is shown on a terminal by one whose output is piped is no safer: the escapes of
// our own appear there only where they do no harm.
func TestCompletionScriptsPassUnchanged(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var raw bytes.Buffer
		a := &app{stdout: &raw, stderr: &raw, shown: &sink{Writer: &raw}}
		root := a.command()
		root.SetArgs([]string{"completion", shell})
		root.SetOut(&raw)
		must(t, root.Execute())
		if got := leasectl(t, nil, "completion", shell); got.stdout != raw.String() || raw.Len() == 0 {
			t.Errorf("leasectl completion %s = %q, want it as cobra makes it", shell, got.stdout)
		}
	}
}
