package deploy

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-shellwords"
)

var units = []string{"leasectl@.service", "leasectl-cron.service"}

// unit is the settings of a unit, the last of each name.
func unit(t *testing.T, name string) map[string]string {
	t.Helper()
	settings := map[string]string{}
	for line := range strings.Lines(read(t, filepath.Join("systemd", name))) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			settings[key] = value
		}
	}
	return settings
}

// environment reads a file of variables as systemd does: a value in double quotes is what stands between them.
func environment(t *testing.T, path string) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for line := range strings.Lines(read(t, path)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			variables[name] = strings.Trim(value, `"`)
		}
	}
	return variables
}

// started is the line of a unit, as systemd would run it for the job report.
func started(t *testing.T, name string) line {
	t.Helper()
	text := strings.ReplaceAll(unit(t, name)["ExecStart"], "%i", "report")
	variables := map[string]string{}
	if strings.Contains(name, "@") {
		variables = environment(t, "systemd/report.env")
	}
	variables["CREDENTIALS_DIRECTORY"] = "/run/credentials/unit"
	text = os.Expand(text, func(name string) string { return variables[name] })
	words, err := shellwords.Parse(text)
	if err != nil || words[0] != "/usr/bin/leasectl" {
		t.Fatalf("%s starts %q, %v, want leasectl of the package", name, words, err)
	}
	return line{args: words[1:], files: map[string]string{"/etc/leasectl/jobs.yaml": read(t, "compose/jobs.yaml")}}
}

// What systemd starts becomes ready, and says so by its protocol.
func TestUnitsStartWhatTellsSystemdThatItIsReady(t *testing.T) {
	for _, name := range units {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := started(t, name)
			socket := filepath.Join(t.TempDir(), "notify")
			c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
			must(t, err)
			defer c.Close()
			l.env = []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=30000000"}
			var told []string
			await := func(text string) {
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
				for b := make([]byte, 4096); !slices.Contains(told, text); {
					n, err := c.Read(b)
					if err != nil {
						t.Errorf("systemd was told %q, want %s: %v", told, text, err)
						return
					}
					told = append(told, strings.Split(string(b[:n]), "\n")...)
				}
			}
			l.ready = func() { await("READY=1") }
			expectReady(t, l)
			await("STOPPING=1")
			await("WATCHDOG=1")
		})
	}
}

// Codes that a restart mends are left to Restart=, and those that it doesn't are the documented ones.
func TestUnitsRestartWhatARestartMayMend(t *testing.T) {
	for _, name := range units {
		u := unit(t, name)
		if u["Type"] != "notify" || u["Restart"] != "on-failure" || u["RestartPreventExitStatus"] != "2 7 9" || u["WatchdogSec"] == "" || u["KillMode"] != "mixed" {
			t.Errorf("%s has the settings %v", name, u)
		}
	}
}

// What a boot brings late, such as a directory or a table, ends leasectl at once: by systemd's defaults it is given up within a second.
func TestUnitsThatAreShownOutliveABoot(t *testing.T) {
	for _, name := range units {
		text := read(t, filepath.Join("systemd", name))
		_, text, _ = strings.Cut(text, "\n[Unit]\n") // The head shows drop-ins.
		of, service, _ := strings.Cut(text, "\n[Service]\n")
		wait, err := time.ParseDuration(unit(t, name)["RestartSec"])
		if err != nil || wait < time.Second || !strings.Contains(service, "\nRestartSec=") || !strings.Contains(of+"\n", "\nStartLimitIntervalSec=0\n") {
			t.Errorf("%s has RestartSec=%v (%v), and of [Unit]\n%s\nwant some seconds, and StartLimitIntervalSec=0 in [Unit]", name, wait, err, of)
		}
	}
	// Whoever writes one from a document gets all of it, too.
	shown := 0
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".md", ".txt", ".service"}, filepath.Ext(path)) || strings.Contains(path, "testdata") {
			return err
		}
		text := read(t, path)
		if !strings.Contains(text, "Restart=") {
			return nil
		}
		shown++
		if !strings.Contains(text, "RestartSec=") || !strings.Contains(text, "StartLimitIntervalSec=0") {
			t.Errorf("%s shows Restart= without RestartSec= and StartLimitIntervalSec=0", path)
		}
		return nil
	})
	if err != nil || shown < len(units)+1 {
		t.Errorf("%d units are shown, %v: want those of the package, and docs/leasectl.md", shown, err)
	}
}

// Who has only the package has all that the heads of the units name.
func TestThePackageHasWhatTheUnitsName(t *testing.T) {
	released := read(t, "../../.goreleaser.yaml")
	for _, name := range units {
		head, _, _ := strings.Cut(read(t, filepath.Join("systemd", name)), "[Unit]")
		if strings.Contains(head, "cp report.env") {
			t.Errorf("%s copies a report.env that nobody has who has only the package", name)
		}
		for _, path := range regexp.MustCompile(`/usr/share/\S+`).FindAllString(head, -1) {
			if !strings.Contains(released, "systemd/"+filepath.Base(path)+", dst: "+path+"}") {
				t.Errorf("%s names %s, which the package hasn't got", name, path)
			}
		}
		if !strings.Contains(released, "dst: /usr/lib/systemd/system/"+name+"}") {
			t.Errorf("the package has no %s", name)
		}
	}
}

// systemd finds nothing wrong in them, and not much that they could do.
func TestUnitsAreSoundAndHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	dir := t.TempDir()
	for _, name := range units {
		// The program is there once the package is installed.
		write(t, filepath.Join(dir, name), strings.ReplaceAll(read(t, filepath.Join("systemd", name)), "/usr/bin/leasectl", leasectl(t)))
		path := filepath.Join(dir, name)
		if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=30", "--no-pager", path).CombinedOutput()
		level := regexp.MustCompile(`exposure level for \S+: ([\d.]+)`).FindStringSubmatch(string(out))
		if err != nil || level == nil {
			t.Errorf("%s: %v, want an exposure of 3.0 at most\n%s", name, err, out)
			continue
		}
		t.Logf("%s: exposure %s", name, level[1])
	}
}
