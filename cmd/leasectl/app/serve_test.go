package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// What lets others in needs a token or a proxy that names them. What is accepted goes on to its store, which isn't there.
func TestWhoMayLookIsSettledBeforeTheStoreIsAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	absent := "sqlite:" + filepath.Join(dir, "none.db")
	for name, content := range map[string]string{"token": "0123456789abcdef\n", "short": "0123456789abcde\n", "empty": ""} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	const reached = "others reach it, so give --token-file, or --trust-header behind a proxy"
	run := "run --worker-type report --every 1m "
	for args, refused := range map[string]string{ // "": accepted
		"serve":                                                             "",
		"serve --allow-actions --timeout 1s":                                "",
		"serve --listen 0":                                                  "",
		"serve --listen :0":                                                 "",
		"serve --listen localhost:0":                                        "",
		"serve --listen [::1]:0":                                            "",
		"serve --listen 0.0.0.0:0 --token-file DIR/token":                   "",
		"serve --listen [::]:0 --trust-header X-Forwarded-User":             "",
		"serve --trust-header X-User --token-file DIR/token":                "",
		"serve --host jobs.example.com --host 192.0.2.7 --host 2001:db8::1": "",

		"serve --listen 0.0.0.0:0":                                   reached,
		"serve --listen [::]:0":                                      reached,
		"serve --listen 192.0.2.1:0":                                 reached,
		"serve --listen jobs.example.com:0":                          reached,
		"serve --listen 0.0.0.0:0 --host jobs.example.com":           reached,
		"serve --listen 0.0.0.0:0 --allow-actions":                   reached,
		"serve --listen 99999":                                       "--listen \"99999\": must have a port",
		"serve --listen jobs.example.com":                            "--listen \"jobs.example.com\"",
		"serve --token-file ":                                        "--token-file \"\": must not be empty",
		"serve --token-file DIR/none":                                "none\"",
		"serve --token-file DIR/short":                               "short\": must have 16 characters or more",
		"serve --token-file DIR/empty":                               "empty\"",
		"serve --listen 0.0.0.0:0 --token-file DIR/short":            "short\": must have 16 characters or more",
		"serve --trust-header X:User":                                "must be the name of a header",
		"serve --trust-header ":                                      "must be the name of a header",
		"serve --host jobs.example.com:8086":                         "must be a name or an address without a port",
		"serve --host http://jobs.example.com":                       "must be a name or an address without a port",
		"serve --host a.example,b.example":                           "must be a name or an address without a port",
		"serve --timeout 2h":                                         "--timeout",
		"serve --page":                                               "unknown flag: --page",
		run + "--page -- true":                                       "--page: goes with --listen only",
		run + "--listen 0 --page-token-file DIR/token -- true":       "--page",
		run + "--listen 0.0.0.0:0 --page -- true":                    "others reach it, so give --page-token-file, too",
		run + "--listen 0 --page --page-token-file DIR/none -- true": "--page-token-file",
		"cron --page DIR/jobs.yaml":                                  "--page: goes with --listen only",
	} {
		words := strings.Split(strings.ReplaceAll(args, "DIR", dir), " ")
		got := leasectl(t, nil, append([]string{words[0], "--store", absent}, words[1:]...)...)
		switch {
		case refused == "" && (got.code == exit.Usage || !strings.Contains(got.stderr, "none.db")):
			t.Errorf("leasectl %s = %+v, want it accepted, and that its store isn't there", args, got)
		case refused != "" && (got.code != exit.Usage || !strings.Contains(got.stderr, refused)):
			t.Errorf("leasectl %s = %+v, want it refused with %q", args, got, refused)
		}
		if strings.Contains(got.stderr+got.stdout, "0123456789") {
			t.Errorf("leasectl %s told the token: %+v", args, got)
		}
	}
}
