package app

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
)

func TestAnErrorOfTheServersIsShownWithoutThePassword(t *testing.T) {
	const uri = "mongodb://user:p%40ss%22w%2Ford@host/jobs?proxyPassword=pr0xy-w0rd"
	var stderr bytes.Buffer
	a := &app{stderr: &stderr, secrets: secret.InURI(uri)}
	err := fmt.Errorf("auth error: %s, %q, %s, %s: %w", uri, `p@ss"w/ord`, `p@ss"w/ord`, "pr0xy-w0rd", store.ErrDenied)
	if got := a.report(advice.ForStore(storeuri.Target{Scheme: "mongodb"}, err)); got != exit.Denied {
		t.Errorf("report() = %d, want %d", got, exit.Denied)
	}
	const want = "leasectl: auth error: mongodb://***:***@host/jobs?proxyPassword=***, \"***\", ***, ***: access denied\n"
	if got, _, _ := strings.Cut(stderr.String(), "try:"); got != want {
		t.Errorf("report() wrote %q, want %q", got, want)
	}
}

func TestNoOutputEverShowsAPassword(t *testing.T) {
	suites.SameGoroutines(t)
	const canary = "c4n4ry"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	refused := l.Addr().String()
	must(t, l.Close())
	t.Chdir(t.TempDir())
	stores := []string{
		"mongodb://user:" + canary + "@" + refused + "/jobs",
		"mongodb://user:" + canary + "%40x@" + refused + "/jobs?authSource=admin",
		"mongodb://user:" + canary + ":more@" + refused + "/jobs",
		"mongodb://user:" + canary + "/more@" + refused + "/jobs",
		"mongodb://user:" + canary + "%zz@" + refused + "/jobs",
		"mongodb://" + canary + ":70000/jobs",
		"mongodb://user:" + canary + "@host:" + canary + "/jobs",
		"mongodb://user:" + canary + "@" + refused + "/jobs?colection=x",
		"mongodb://user:" + canary + "@" + refused + "/a b?collection=$",
		"mongodb://user:" + canary + "@" + refused + "/jobs?tlsCertificateKeyFilePassword=" + canary + "&w=x",
		"mongodb://user:" + canary + "@" + refused + "/jobs?authMechanism=" + "SCRAM-SHA-9",
		"mongodb+srv://user:" + canary + "@a.invalid/jobs",
		"mongodb+srv://user:" + canary + "@a.invalid:1/jobs",
		"cosmos://user:" + canary + "@account/db/c",
		"cosmos://account/db/c?AccountKey=" + canary,
		"cosmos://" + canary + "==",
		"cosmos://account/" + canary + "==",
		"cosmos:" + canary + "/+=",
		"cosmos:///db/" + canary + "@",
		"redis://user:" + canary + "@" + refused + "/0", "postgres://user:" + canary + "@" + refused + "/jobs", "mysql://user:" + canary + "@" + refused + "/jobs",
		"redis://user:" + canary + "@" + refused + "/0?prefx=x", "s3://user:" + canary + "@bucket", "azblob://account/c?sig=" + canary, "etcd://user:" + canary + "@" + refused,
		canary,
		canary + ":x",
	}
	for _, s := range stores {
		for _, args := range [][]string{
			{"init", "--timeout", "100ms"},
			{"inspect", "slots", "--timeout", "100ms"},
			{"doctor", "--timeout", "100ms"},
			{"doctor", "--output", "json", "--timeout", "100ms"},
			{"inspect", "slots", "--worker-type", "t", "--watch", "--output", "json", "--timeout", "100ms"},
			{"run", "--worker-type", "t", "--every", "1s", "--", "no-such-command-anywhere"},
			{"run", "--worker-type", "t", "--bogus"},
			{"plan", "--every", "5m"},
			{"plan", "--every", "soon"},
			{"version"},
			{"--help"},
		} {
			for _, way := range []output{
				leasectl(t, []string{storeuri.FileVariable + "=" + fileOf(t, s)}, args...),
				leasectl(t, nil, append([]string{"--store-file", fileOf(t, s+"\n")}, args...)...),
				leasectl(t, nil, append([]string{"--store-file=" + fileOf(t, s+"\n"+s)}, args...)...),
				leasectl(t, []string{storeuri.Variable + "=" + s}, args...),
				leasectl(t, nil, append([]string{"--store", s}, args...)...),
				leasectl(t, nil, append([]string{"--store=" + s}, args...)...),
			} {
				if strings.Contains(way.stdout+way.stderr, canary) {
					t.Errorf("leasectl %v with the store %s shows the password: %+v", args, s, way)
				}
			}
		}
	}
	for _, args := range [][]string{
		{"mongodb://user:" + canary + "@host"},
		{"init", "mongodb://user:" + canary + "@host"},
		{"inspect", "mongodb://user:" + canary + "@host"},
		{"--stor", "mongodb://user:" + canary + "@host"},
		{"--mongodb://user:" + canary + "@host"},
	} {
		if got := leasectl(t, nil, args...); got.code != exit.Usage || strings.Contains(got.stdout+got.stderr, canary) {
			t.Errorf("leasectl %v = %+v, want code %d and no password", args, got, exit.Usage)
		}
	}
}

// fileOf makes a file with a content.
func fileOf(t *testing.T, content string) (path string) {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err == nil {
		_, err = f.WriteString(content)
		err = errors.Join(err, f.Close())
	}
	must(t, err)
	return f.Name()
}

// What a file has that isn't a URI may be a password, or a key, as a whole or in any part.
func TestNoOutputShowsWhatIsInAFileThatNamesNoStore(t *testing.T) {
	const canary = "canary"
	for _, content := range []string{
		canary, canary + ":x", canary + "://x", "sqlite:x?" + canary + "=1", "sqlite:///" + canary, "cosmos:" + canary, "x\n" + canary, canary + "\x00", strings.Repeat(canary, 20000),
	} {
		for _, way := range []output{
			leasectl(t, nil, "run", "--store-file", fileOf(t, content), "--worker-type", "t", "--every", "1s", "--", "true"),
			leasectl(t, []string{storeuri.FileVariable + "=" + fileOf(t, content)}, "inspect", "slots"),
			leasectl(t, nil, "plan", "--store-file", fileOf(t, content), "--every", "1m"),
			leasectl(t, []string{storeuri.FileVariable + "=" + fileOf(t, content)}, "__complete", "inspect", "slots", "--worker-type", ""),
		} {
			if strings.Contains(way.stdout+way.stderr, canary) {
				t.Errorf("with %.30q in the file, leasectl shows it: %+v", content, way)
			}
		}
	}
}

func TestTheKeysOfCosmosDBAreHiddenAndNothingElseIs(t *testing.T) {
	const key = "c4n4ry/c4n4ry+c4n4ryQ=="
	for _, c := range []struct{ name, value string }{
		{cosmos.KeyVariable, key},
		{cosmos.KeyVariable, " " + key + "\n"},
		{cosmos.ConnectionVariable, "AccountEndpoint=https://h:443/;AccountKey=" + key + ";"},
		{cosmos.ConnectionVariable, "accountkey = " + key + " ;AccountEndpoint=https://h:443/"},
		{cosmos.ConnectionVariable, "AccountEndpoint=https://h:443/;AcountKey=" + key},
		{cosmos.ConnectionVariable, key},
		{"AZURE_CLIENT_SECRET", key},
	} {
		a := &app{env: []string{c.name + "=" + c.value}}
		a.secrets = a.secretsIn(nil)
		for said, want := range map[string]string{
			"the key " + key + " is bad":                           "the key *** is bad",
			"the key " + key[:12] + "… is bad":                     "the key ***… is bad",
			"AccountEndpoint must be https://h:443/ or AccountKey": "AccountEndpoint must be https://h:443/ or AccountKey",
		} {
			if got := strings.Join(strings.Fields(a.scrub(said)), " "); got != want {
				t.Errorf("%s=%q: scrub(%q) = %q, want %q", c.name, c.value, said, got, want)
			}
		}
	}
}

func TestAPasswordLikeOtherTextsGarblesNothing(t *testing.T) {
	for _, password := range []string{"e", "for", "leasectl", "db1", "jobs", "store", "db1.example:27017", "mongodb"} {
		uri := "mongodb://user:" + password + "@db1.example:27017/jobs?proxyPassword=" + password
		got := leasectl(t, []string{storeuri.Variable + "=" + uri}, "run", "--every", "5m", "--no-such-flag")
		want := leasectl(t, nil, "run", "--every", "5m", "--no-such-flag")
		if got != want {
			t.Errorf("the password %q: %+v, want %+v", password, got, want)
		}
		a := &app{secrets: secret.InURI(uri)}
		const said = "leasectl: store mongodb://***:***@db1.example:27017/jobs: dial db1.example:27017: refused"
		if got := a.scrub(strings.Replace(said, "***:***", "user:"+password, 1)); got != said {
			t.Errorf("the password %q: scrub() = %q, want %q", password, got, said)
		}
	}
}

// What looks like one in the name of a file is none, and a hint without it names another file.
func TestThePathOfASQLiteFileIsNoSecret(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	must(t, err)
	for name, word := range map[string]string{"password=hunter2": "'sqlite:password=hunter2'", "sig=it's": `'sqlite:sig=it'\''s'`} {
		for _, way := range []func(args ...string) output{
			func(args ...string) output {
				return leasectl(t, []string{storeuri.Variable + "=sqlite:" + name}, args...)
			},
			func(args ...string) output { return leasectl(t, nil, append(args, "--store", "sqlite:"+name)...) },
		} {
			want := "leasectl: sqlite: open " + filepath.Join(here, name) + ": ledger not initialised"
			if got := way("inspect", "slots"); !strings.HasPrefix(got.stderr, want) || !strings.HasSuffix(got.stderr, "\ntry: leasectl init --store "+word+"\n") {
				t.Errorf("leasectl inspect slots = %+v, want %q, and to try %s", got, want, word)
			}
			got := way("inspect", "slots", "mongodb://user:c4n4ry@h/sqlite:"+name)
			if strings.Contains(got.stderr, "c4n4ry") {
				t.Errorf("leasectl inspect slots = %+v, want no password", got)
			}
		}
	}
}
