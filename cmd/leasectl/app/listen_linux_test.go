package app

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/race"
)

// listensAt is the address at which a process answers, by its log.
func listensAt(p *process) string {
	p.t.Helper()
	return p.awaitMatch(`(?:listening on |"address":")(?:http://)?([][0-9.:]+)`)[1]
}

// probed asks a process: for its health as a kubelet does, within a second, and for the rest within ten, as
// Prometheus does. Under the race detector all takes longer.
func probed(t *testing.T, p *process, path string) (ok bool, body string) {
	t.Helper()
	at := "http://" + listensAt(p)
	timeout := time.Second
	if race.Enabled || !strings.HasSuffix(path, "z") {
		timeout = 10 * time.Second
	}
	client := http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, http.NoBody)
	must(t, err)
	r.Header.Set("User-Agent", "kube-probe/1.30")
	answer, err := client.Do(r)
	must(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode >= 200 && answer.StatusCode < 400, string(b)
}

func TestRunCountsWhatItHoldsAndStopsWithAClientThatIsStuck(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	flags := []string{"--every", oneSlot, "--failover-within", "1h", "--listen", ":0"}
	a := startRun(t, storeArg, "a", flags, "sleep", "1000")
	a.await("command started")
	b := startRun(t, storeArg, "b", flags, "sleep", "1000")
	b.await("standby: held by \"a\"")
	for p, holds := range map[*process]string{a: "1", b: "0"} {
		ok, body := probed(t, p, "/metrics")
		if !ok || !strings.Contains(body, `slotlease_lease_holding{worker_type="t"} `+holds+"\n") || !strings.Contains(body, "\nprocess_cpu_seconds_total ") {
			t.Errorf("GET /metrics: %.2000s, want slotlease_lease_holding %s", body, holds)
		}
	}
	stuck, err := net.Dial("tcp", listensAt(a))
	must(t, err)
	defer stuck.Close()
	if _, err := io.WriteString(stuck, "GET /status HTTP/1.1\r\nHo"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	ends(t, a, b)
	procs.Within(t, "stopping with a client that is stuck", time.Since(begun), 3*time.Second)
}
