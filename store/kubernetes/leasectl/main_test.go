package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/kubernetes"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/leasectltest"
)

const canary = "c4naryT0ken-of-nobody"

func TestMain(m *testing.M) { leasectltest.Main(m, main) }

// namespaces counts those that tests have used.
var namespaces atomic.Int64

func TestTheCommandsWorkOnKubernetes(t *testing.T) {
	t.Parallel()
	kubeconfig := kubepeer.Shared(t)
	leasectltest.Run(t, leasectltest.Harness{
		Fresh: func(t *testing.T) (string, []string) {
			t.Helper()
			return fmt.Sprintf("k8s:commands-%d?context=admin&oneServer=true", namespaces.Add(1)), []string{"KUBECONFIG=" + kubeconfig}
		},
		Form: "k8s:NAMESPACE?context=NAME",
		// The time is known to ±0.5 s at first.
		Every: 10 * time.Second, Failover: 5 * time.Second,
		Secrets: []string{kubepeer.Token("admin")},
		Bad:     mistakes,
		Checks:  []string{kubernetes.CheckOrder, kubernetes.CheckQuota},
	})
}

// mistakes are URIs, and what leasectl says of them.
var mistakes = map[string]string{
	"k8s://jobs":                    "without slashes before it",
	"k8s:Jobs":                      "lower-case letters",
	"k8s:jobs?token=" + canary:      "parameter token is unknown: use kubeconfig, context, serverSkew, oneServer",
	"k8s:jobs?serverSkew=soon":      "try: k8s:NAMESPACE?context=NAME, as in leasectl --help",
	"k8s://u:" + canary + "@h/jobs": "the namespace must be",
	"k8s:jobs?kubeconfig=/none":     "/none",
}

// replying is the kubeconfig of a server that answers everything with a status, with a token.
func replying(t *testing.T, code int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		// A server that repeats what it was sent.
		_, _ = fmt.Fprintf(w, `{"kind":"Status","status":"Failure","reason":"x","code":%d,"message":"no such token: %s"}`, code, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	return kubeconfig(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u","namespace":"jobs"}}],
		"clusters":[{"name":"k","cluster":{"server":%q}}],"users":[{"name":"u","user":{"token":%q}}]}`, s.URL, canary))
}

func kubeconfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNoTokenOfAKubeconfigIsShown(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		kubeconfig string
		code       int
	}{
		"unauthorized":   {replying(t, http.StatusUnauthorized), 5},
		"forbidden":      {replying(t, http.StatusForbidden), 5},
		"unavailable":    {replying(t, http.StatusServiceUnavailable), 3},
		"a text":         {kubeconfig(t, canary), 2},
		"a list":         {kubeconfig(t, "["+canary+"]"), 2},
		"a wrong type":   {kubeconfig(t, `{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":{"token":["`+canary+`"]}}]}`), 2},
		"a wrong number": {kubeconfig(t, `{"apiVersion":"v1","kind":"Config","users":"`+canary+`"}`), 2},
		"a broken line":  {kubeconfig(t, "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user: {token: "+canary+"\n"), 2},
		"a wrong key":    {kubeconfig(t, `{"apiVersion":"v1","kind":"Config","users":[{"name":"u","user":{"client-key-data":"`+canary+`"}}]}`), 2},
		"nothing there":  {filepath.Join(t.TempDir(), "none"), 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for _, args := range []string{
				"status --timeout 3s", "doctor --timeout 5s", "init --timeout 3s", "run --worker-type t --every 24h --once --timeout 3s -- env", "__complete why --worker-type ",
			} {
				got := leasectltest.Leasectl(t, []string{"LEASECTL_STORE=k8s:?kubeconfig=" + c.kubeconfig}, strings.Split(args, " ")...)
				if strings.Contains(got.Stdout+got.Stderr, canary) || strings.Contains(got.Stdout, "LEASE_TOKEN") {
					t.Errorf("leasectl %s = %+v, want no token", args, got)
				}
				want := c.code
				switch {
				case strings.HasPrefix(args, "doctor") && want != 2:
					want = 11
				case strings.HasPrefix(args, "__complete"):
					want = 0
				}
				if got.Code != want {
					t.Errorf("leasectl %s = %+v, want code %d", args, got, want)
				}
			}
		})
	}
}

func TestTheHelpAndMistakesNameTheStore(t *testing.T) {
	t.Parallel()
	if got := leasectltest.Leasectl(t, nil, "--help"); got.Code != 0 || !strings.Contains(got.Stdout, "\n  k8s:NAMESPACE?context=NAME\n") || !strings.Contains(got.Stdout, "k8s:…") {
		t.Errorf("leasectl --help = %+v, want the form of the store", got)
	}
	for uri, says := range mistakes {
		got := leasectltest.Leasectl(t, []string{"LEASECTL_STORE=" + uri}, "status")
		if got.Code != 2 || !strings.Contains(got.Stderr, says) || strings.Contains(got.Stderr, canary) {
			t.Errorf("leasectl status on %s = %+v, want %q", uri, got, says)
		}
	}
	// A store that this leasectl lacks.
	if got := leasectltest.Leasectl(t, nil, "status", "--store", "etcd://h/x"); got.Code != 2 || !strings.Contains(got.Stderr, "store/etcd") {
		t.Errorf("leasectl status on etcd = %+v, want which leasectl has it", got)
	}
}
