package app

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/internal/suites"
)

func TestACommandSaysThatItWaitsForAStoreThatIsSilent(t *testing.T) {
	suites.RealTime(t)
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	host := silent.Addr().String()
	for _, c := range []struct {
		args, uri string
		waits     bool
	}{
		{"status --timeout 4s", "mongodb://user:c4n4ry@" + host + "/jobs", true},
		{"inspect slots --timeout 4s", "postgres://user:c4n4ry@" + host + "/jobs", true},
		{"status --timeout 1s", "mongodb://user:c4n4ry@" + host + "/jobs", false},
		{"pause --worker-type t", "mongodb://user:c4n4ry@" + host + "/jobs", false}, // a mistake in the usage
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			var stdout, stderr bytes.Buffer
			code := execute(t.Context(), strings.Fields(c.args), []string{"LEASECTL_STORE=" + c.uri}, strings.NewReader(""), &stdout, &stderr)
			got := output{code, stdout.String(), stderr.String()}
			if got.code == exit.OK || time.Since(began) > 8*time.Second {
				t.Errorf("leasectl %s = %+v after %v, want a failure", c.args, got, time.Since(began))
			}
			if waits := strings.HasPrefix(got.stderr, "leasectl: still waiting for ") && strings.Contains(got.stderr, host); waits != c.waits {
				t.Errorf("leasectl %s says that it waits: %v, want %v: %q", c.args, waits, c.waits, got.stderr)
			}
			if strings.Contains(got.stdout+got.stderr, "c4n4ry") {
				t.Errorf("leasectl %s shows the password: %+v", c.args, got)
			}
		})
	}
}
