package app

import (
	"strings"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// Neither the log nor an answer shows a secret: while the store answers, refuses the password, or is down.
func TestNoLogAndNoAnswerShowsASecret(t *testing.T) {
	const canary = "c4n4ryc4n4ry"
	nothing := func() {}
	for name, open := range map[string]func(t *testing.T) (uri, env string, die func()){
		"SQLite beside a key of CosmosDB": func(t *testing.T) (string, string, func()) {
			t.Helper()
			_, uri := newLedger(t)
			return uri, cosmos.ConnectionVariable + "=AccountEndpoint=https://h:443/;AccountKey=" + canary, nothing
		},
		"MongoDB by a password": func(t *testing.T) (string, string, func()) {
			t.Helper()
			peer := mongopeer.Start(t)
			return strings.Replace(peer.URI(), "://", "://user:"+canary+"@", 1) + "jobs", "A=b", peer.Kill
		},
		"CosmosDB by a connection string": func(t *testing.T) (string, string, func()) {
			t.Helper()
			peer := cosmospeer.Start(t, cosmospeer.Options{})
			mustRun(t, []string{cosmos.KeyVariable + "=" + cosmospeer.Key()}, "init", "--store", strings.Replace(peer.URI(), "/?", "/jobs/leases?", 1))
			return "cosmos:///jobs/leases", cosmos.ConnectionVariable + "=AccountEndpoint=http://" + peer.Addr() + "/;AccountKey=" + canary, peer.Kill
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri, env, die := open(t)
			var ps []*process
			for _, format := range []string{"text", "json"} {
				ps = append(ps, startUnder(t, []string{"env", "-u", cosmos.KeyVariable, env}, "run", "--store", uri, "--worker-type", "t", "--instance-id", format, "--every", "2s",
					"-v", "--log-format", format, "--listen", "0", "--", "sleep", "1000"))
			}
			wantNone := func(when string) {
				t.Helper()
				for _, p := range ps {
					texts := map[string]string{"the log": p.output()}
					for _, path := range []string{"/healthz", "/readyz", "/status", "/metrics"} {
						_, texts[path] = probed(t, p, path)
					}
					if !strings.Contains(texts["/status"], `"store":"`) || !strings.Contains(texts["/metrics"], "slotlease_store_failing") {
						t.Errorf("%s, GET /status = %s, and GET /metrics = %.500s", when, texts["/status"], texts["/metrics"])
					}
					for where, text := range texts {
						if strings.Contains(text, canary) || strings.Contains(text, cosmospeer.Key()) {
							t.Errorf("%s, %s shows the secret: %s", when, where, text)
						}
					}
				}
			}
			for _, p := range ps {
				p.awaitMatch(`allocated|standby|held by|"slot lost"|not reached yet|lost|[Aa]uth`)
			}
			wantNone("while the store answers")
			die()
			if name != "SQLite beside a key of CosmosDB" {
				for _, p := range ps {
					procs.Eventually(t, "the store is known to fail", func() bool {
						_, body := probed(t, p, "/status")
						return strings.Contains(body, `"lastError":"`)
					})
				}
			}
			wantNone("when the store is down")
			for _, p := range ps {
				p.signal(syscall.SIGTERM)
				p.wait()
				if strings.Contains(p.output(), canary) {
					t.Errorf("the log shows the secret at its end: %s", p.output())
				}
			}
		})
	}
}
