package app

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/demo"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/workerlease"
)

// errHeld is noted in front of all problems, so that every command stops where
// it has checked its options: nothing is opened, started or written.
var errHeld = errors.New("held back by the test")

// heldBack runs leasectl up to where a command would begin to act. The
// environment holds the store and nothing else. It does without completeOptions,
// whose entries cobra keeps for ever, and so in millions of executions.
func heldBack(t *testing.T, storeText string, args ...string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{env: []string{storeuri.Variable + "=" + storeText}, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}
	a.shown = &sink{Writer: a.picture(), stop: func() {}}
	a.problems = []error{errHeld}
	a.secrets = a.secretsIn(args)
	root := a.command()
	for _, name := range []string{demo.WorkCommand, "man"} { // They have no options, and act.
		acts, _, err := root.Find([]string{name})
		if err != nil || acts.Name() != name {
			t.Fatalf("Find(%s) = %v, %v", name, acts, err)
		}
		acts.RunE = func(*cobra.Command, []string) error { return exit.BadUsage("", errHeld) }
	}
	root.SetArgs(a.readable(args))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code := a.report(root.ExecuteContext(context.Background()))
	return output{code, stdout.String(), stderr.String()}
}

// wantTold checks what holds of everything that is told of bad arguments.
func wantTold(t *testing.T, got output, args []string) {
	t.Helper()
	if !utf8.ValidString(got.stderr) || strings.IndexFunc(got.stderr, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) >= 0 {
		t.Errorf("leasectl %q wrote %q, want what can be shown", args, got.stderr)
	}
	switch got.code {
	case exit.OK:
	case exit.Usage, exit.Failure:
		if !strings.HasPrefix(got.stderr, "leasectl: ") {
			t.Errorf("leasectl %q = %d, %q, want to be told why", args, got.code, got.stderr)
		}
	default:
		t.Errorf("leasectl %q = %d, want 0, 1 or 2", args, got.code)
	}
}

// FuzzArguments gives leasectl arbitrary arguments, one to a line, with a password
// among them and in the environment.
func FuzzArguments(f *testing.F) {
	for i, line := range []string{
		"", "init", "init\n--timeout\n1s", "inspect\nslots\n--watch\n--interval\n1s\n--output\njson", "inspect\nslot", "--help", "help\ninspect\nslots",
		"run\n--worker-type\nt\n--every\n5m\n--\ntrue", "run\n--worker-type\nt\n--cron\n0 2 * * *\n--zone\nEurope/Berlin\n--\nsh\n-c\ntrue",
		"run\n--every\nsoon\n--priority\n8\n--tie-break\ncoin\ntrue", "run\n-v\n--tether\n--\n--store", "run\n--worker-type\nt\n--every\n5m\n--once-per-slot\n--max-attempts\n3\n--catch-up\nnewest\n--\ntrue", "run\n--once-per-slot=maybe\n--max-attempts\n0", "demo\n--slots\n6\n--interval\n1s\n--keep",
		"demo-work\nx", "version\n--output\njson", "--version", "completion\nbash", "__complete\nrun\n--tie-break\n", "__completeNoDesc\ninspect\n",
		"plan\n--workers\n3\n--every\n5m\n--consistency\nsession", "plan\n--cron\n@yearly\n--lead\n1m\n--output\njson", "plan\n--interval\n8784h\n--failover-within\n80ms\n--step\n1ns\n--workers\n100000", "run\n--worker-type", "run\n--cron", "run\n--instance-id", "exit-codes", "innit", "--stor\nx", "-x", "---", "--=", "-vv", "run\n--group=\n--instance-id=\xff\n--log-level\nloud",
	} {
		f.Add(line, "", byte(i))
		f.Add(line, "p@ss/w:rd", byte(i+64))
		f.Add(line, strings.Repeat("long", 30), byte(2+128))
	}
	// Inputs that the fuzzer found, of which each reaches something else.
	f.Add("run\n--worker-type\nt\n--cron\n0 * * * *", "ά}8\xa2\xa9\x11\x10", byte('9'))
	f.Add("--", "\b", byte('ë'))
	f.Add("version\n--output", "p@ss/w:rd", byte('M'))
	f.Add("init", "\x9a\xfe\r㽊\x91\x0er\xbdAv\n\x16=\xd8\n\xfaV\x81\x97\x8b\xcc\xe6\x80\xc7\xcc%\xd1\x01rj", byte('N'))
	f.Add("run\n--worker-type\nt\n--cron\n0 2 d\xe9P\x87.f_\fF * *", "p@ss/w:rd", byte('¥'))
	f.Add("run\n--worker-type\nt\n--cron\n0 2 * * r\n--zone\nEu", "", byte('E'))
	f.Add("run\n--worker-type\nt\x06\x06\n--cron", " /\"\x1e\xb6\x8c{\xab", byte('L'))
	f.Fuzz(func(t *testing.T, lines, password string, how byte) {
		const canary = "c4n4ryc4n4ry"
		uri := "mongodb://user:" + canary + password + "@127.0.0.1:1/jobs"
		if how&32 != 0 {
			uri = "mongodb://user:" + url.PathEscape(canary+password) + "@127.0.0.1:1/jobs"
		}
		args := strings.Split(lines, "\n")
		at := int(how&7) % (len(args) + 1)
		switch how >> 6 {
		case 0:
			args = slices.Insert(args, at, "--store", uri)
		case 1:
			args = slices.Insert(args, at, "--store="+uri)
		case 2:
			args = slices.Insert(args, at, uri)
		}
		env := uri
		if how&16 != 0 {
			env = ""
		}
		got := heldBack(t, env, args...)
		wantTold(t, got, args)
		if strings.Contains(got.stdout+got.stderr, canary) {
			t.Errorf("leasectl %q = %+v, want no password", args, got)
		}
	})
}

// FuzzStore names an arbitrary store, and checks that nothing secret is shown of
// it, whatever its scheme.
func FuzzStore(f *testing.F) {
	for i, s := range []string{
		"", "sqlite:x.db", "sqlite://x.db", "sqlite::memory:", "sqlite:\x00", "mongodb://h/d?collection=c", "mongodb+srv://h/d", "mongodb://h,[::1]:1/?tls=true",
		"cosmos://account/db/container", "cosmos:///db/c?autoscale=1000", "cosmos://127.0.0.1:8081/?insecureHTTP=true", "cosmos:", "redis://h", `C:\leases.db`, "leases.db", ":", "mongodb:", "MONGODB://h/d", "mongodb://h/d#x", "postgres://h/d?x=y",
	} {
		f.Add(s, "", byte(i))
		f.Add(s, "p%40ss", byte(i+64))
		f.Add(s, "p/:?#@ \"\\\xff", byte(i+128))
		f.Add(s, ":abc@", byte(i+64+128))
	}
	// Inputs that the fuzzer found, of which each reaches something else.
	f.Add("0", "&\x00\x00\x00=", byte('\x1b'))
	f.Add("0", "%", byte(':'))
	f.Add("mongodb+srv://h\x00@", "", byte('7'))
	f.Add("0", ":?\xd8\xd8@ؘ_@\x98@", byte('\u008b'))
	f.Fuzz(func(t *testing.T, text, password string, how byte) {
		// With a key, or a connection string where the URI names no account.
		environ := func(name string) string {
			switch keyless := strings.HasPrefix(text, "cosmos:///"); {
			case name == cosmos.KeyVariable && !keyless:
				return "a2V5"
			case name == cosmos.ConnectionVariable && keyless:
				return "AccountEndpoint=https://h/;AccountKey=a2V5"
			}
			return ""
		}
		if target, err := storeuri.Parse(text, environ); err == nil && (target.Scheme == "" || target.Shown == "") {
			t.Errorf("Parse(%q) = %+v, want a scheme and how to show it", text, target)
		}
		const canary = "c4n4ryc4n4ry"
		scheme, rest, _ := strings.Cut(text, ":")
		rest = strings.TrimPrefix(rest, "//")
		p := canary + password
		// The last parameter ends where the next one begins.
		if how&64 != 0 && !strings.Contains(password, "&") {
			p = password + canary
		}
		if how&32 != 0 {
			p = url.QueryEscape(p)
		}
		if how&16 != 0 {
			scheme = []string{"mongodb", "mongodb+srv", "cosmos", "redis"}[how>>1&3]
		}
		secret := scheme + "://user:" + p + "@" + rest
		if how&8 != 0 {
			secret = scheme + "://h/d?" + []string{"tlsCertificateKeyFilePassword", "authMechanismProperties", "AccountKey", "sasToken"}[how>>1&3] + "=" + p
		}
		// A path is no secret, whatever it looks like.
		if _, err := storeuri.Parse(secret, environ); err != nil && scheme != "sqlite" && strings.Contains(err.Error(), canary) {
			t.Errorf("Parse(%q) = %v, want no secret", secret, err)
		}
		var stderr bytes.Buffer
		a := &app{stderr: &stderr, problems: []error{errHeld}}
		c := &cobra.Command{Use: "inspect"}
		c.Flags().StringVar(&a.store, "store", "", "")
		args := []string{"--store=" + secret}
		if how&1 != 0 {
			a.env, args = []string{storeuri.Variable + "=" + secret}, nil
		}
		// In a connection string, what follows a semicolon is another part.
		if how&128 != 0 && !strings.Contains(password, ";") {
			a.env = append(a.env, []string{cosmos.KeyVariable + "=" + p, cosmos.ConnectionVariable + "=AccountEndpoint=https://h/;AccountKey=" + p}[how>>1&1])
		}
		a.secrets = a.secretsIn(args)
		must(t, c.ParseFlags(args))
		if target := a.target(c); target.Scheme == "cosmos" {
			l, err := target.Open(context.Background(), true)
			if err == nil {
				err = l.Close(context.Background())
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("open of %q with the keys in %q = %v, want no secret", secret, a.env, err)
			}
		}
		got := output{code: a.report(a.usage(c)), stderr: stderr.String()}
		wantTold(t, got, args)
		// What a driver may say of it.
		said := a.scrub(secret + ": " + p + ": bad")
		if shown := got.stderr + said; strings.Contains(shown, canary) {
			t.Errorf("leasectl with the store %q shows %q, want no secret", secret, shown)
		}
	})
}

// FuzzRunOptions gives run arbitrary options, one to a line: what it accepts is
// accepted by the library, too, so that nothing is refused once the store is open.
func FuzzRunOptions(f *testing.F) {
	for _, line := range []string{
		"--worker-type\nt\n--every\n5m", "--worker-type\nt\n--every\n100ms\n--margin\n10ms", "--worker-type\nt\n--cron\n0,1 * * * *\n--margin\n29s",
		"--worker-type\nt\n--every\n8784h\n--lead\n5m\n--step\n5m\n--priority\n7\n--tie-break\nrandom\n--wait-for-boundary", "--worker-type\nt\n--every\n1m\n--group\ng\n--instance-id\ni",
		"--worker-type\nt\n--cron\n@yearly\n--zone\nPacific/Apia\n--stop-grace\n1h", "--worker-type\nt\n--every\n5m\n--instance-id\n\xff", "--worker-type\nt\n--every\n1.5ms",
		"--worker-type\na/b\n--every\n0", "--worker-type=t\n--cron=* * * * *\n--every=1m\n--zone=UTC", "--worker-type\nt\n--every\n5m\n--margin\n2m30s", "--every\n5m\n--every\n1s\n--worker-type\nt\n--worker-type\n\n",
		"--worker-type\nt\n--every\n5m\n--failover-within\n150s\n--continuous\n--no-failback\n--stop-grace\n37s", "--worker-type\nt\n--every\n1h\n--failover-within\n30m\n--margin\n150s\n--lead\n5m", "--worker-type\nt\n--cron\n0 2 * * *\n--failover-within\n80ms\n--margin\n10ms\n--lead\n40ms", "--worker-type\nt\n--every\n5m\n--continuous\n--group\ng", "--worker-type\nt\n--every\n100ms\n--failover-within\n80ms",
		"--worker-type\nt\n--every\n5m\n--once-per-slot\n--max-attempts\n1000000\n--catch-up\nnewest", "--worker-type\nt\n--every\n320ms\n--once-per-slot\n--margin\n10ms\n--lead\n40ms", "--worker-type\nt\n--every\n319ms\n--once-per-slot", "--worker-type\nt\n--every\n160ms\n--once-per-slot\n--failover-within\n80ms",
		"--worker-type\nt\n--cron\n0 2 * * *\n--zone\nEurope/Berlin\n--once-per-slot\n--stop-grace\n15s\n--margin\n7500ms\n--lead\n30s", "--worker-type\nt\n--every\n5m\n--once-per-slot\n--group\ng\n--continuous", "--worker-type\nt\n--every\n5m\n--max-attempts\n3\n--catch-up\nnewest",
	} {
		f.Add(line)
	}
	// Inputs that the fuzzer found, of which each reaches something else.
	f.Add("--worker-type\nt\n--every\n8786h")
	f.Add("--cron\n0,1 * * * 5\n--margin\n29* 5\n--margin\n")
	f.Add("--worker-type\nt\n--every\n8784h\n--lead\n5m\n--step\n5m\n--priority\n")
	f.Add("--worker-type\ntRCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC")
	f.Add("oork-tyne\nt\n--cron\n")
	f.Add("--worker-type\nt\n--cron\n@yeariy\n--zone\nPaciflc/Api")
	f.Add("--worker-type=\x86\n--cron=* * * * *\xc9--eve\x80\xff=1m\n--zone=U")
	f.Fuzz(func(t *testing.T, lines string) {
		a := &app{}
		flags := &runFlags{}
		c := &cobra.Command{Use: "run"}
		a.runFlags(c.Flags(), flags)
		if err := c.ParseFlags(strings.Split(lines, "\n")); err != nil {
			return
		}
		begun := time.Now()
		o := a.runTiming(flags, c.Flags()).Options
		if took := time.Since(begun); took > suites.Limit(5*time.Second, time.Minute) {
			t.Errorf("runTiming() of %q took %v", lines, took)
		}
		if len(a.problems) > 0 {
			return
		}
		if o.Job != nil {
			err := workerlease.Run(context.Background(), nil, o, nil)
			wantOnlyMissing(t, lines, err)
			return
		}
		w, err := workerlease.StartLeasing(context.Background(), nil, o, workerlease.Callbacks{})
		if w != nil {
			t.Fatalf("StartLeasing() = %v, %v, want an error: it has no ledger", w, err)
		}
		wantOnlyMissing(t, lines, err)
	})
}

// wantOnlyMissing demands that the library complains of no more than that there is no
// ledger and no code.
func wantOnlyMissing(t *testing.T, lines string, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("leasectl run %q: the library has no error, want one: it has no ledger", lines)
	}
	if n := strings.Count(err.Error(), "\n"); n != 1 {
		t.Errorf("leasectl run %q is accepted, but the library says %v, want no problem but the ledger and the code", lines, err)
	}
}
