package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// keeping is a server that keeps what it is given, behind a front with TLS.
func keeping(t *testing.T, cert, key, clients string) *documenttest.Front {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/namespaces/jobs"):
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodGet:
			_, _ = w.Write([]byte("{}"))
		default:
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(s.Close)
	return documenttest.NewFront(t, s.Listener.Addr().String(), cert, key, clients)
}

func TestCertificatesAreRenewedOnDisk(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(host string, at []string) Options{
		"an application's": func(host string, at []string) Options {
			return Options{URI: "k8s:jobs", Config: &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAFile: at[0], CertFile: at[1], KeyFile: at[2]}}}
		},
		"of a kubeconfig's files": func(host string, at []string) Options {
			return kubeconfig(t, filepath.Dir(at[0])+"/config", "clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: u, user: {client-certificate: %q, client-key: %q}}]\n", host, at[0], at[1], at[2])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca, key := documenttest.Certificate(t)
			client, clientKey := documenttest.Certificate(t, "worker")
			f := keeping(t, ca, key, client)
			at := documenttest.Renewable(t, ca, client, clientKey)
			l := opened(t, config("https://"+f.Addr, at))
			ca, key = documenttest.Certificate(t)
			client, clientKey = documenttest.Certificate(t, "worker")
			documenttest.GoesOn(t, l, func() {
				documenttest.Renew(t, at[0], ca)
				documenttest.Renew(t, at[1], client)
				documenttest.Renew(t, at[2], clientKey)
				f.Renew(ca, key, client)
			})
			documenttest.GoesOn(t, l, func() { // What was whole last is used.
				documenttest.Must(t, "Remove()", os.Remove(at[0]))
				documenttest.Renew(t, at[1], ca) // the key isn't written yet
				f.Cut()
			})
			documenttest.GoesOn(t, l, func() {
				documenttest.Renew(t, at[1], client)
				documenttest.Must(t, "WriteFile()", os.WriteFile(at[0], nil, 0o600)) // It is being written.
				f.Cut()
			})
			f.Renew(client, clientKey, "")
			documenttest.ComesToSay(t, "Append() to a server of another authority", func(ctx context.Context, _ int) error {
				return l.Append(ctx, storetest.Grant("job", 1))
			}, at[0], "can't be read now")
		})
	}
}

// Somebody works with another cluster of theirs (kubectl config use-context): a worker goes on with its own, by its authorities.
func TestAnotherContextOfTheKubeconfigIsNotTaken(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "config")
	ca, key := documenttest.Certificate(t)
	f := keeping(t, ca, key, "")
	write := func(current string) Options {
		o := kubeconfig(t, at, "clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}, {name: d, cluster: {server: %[1]q, insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {token: s3cr3t}}]\n", "https://"+f.Addr, ca)
		text, err := os.ReadFile(at)
		documenttest.Must(t, "ReadFile()", err)
		text = []byte(strings.Replace(string(text), "current-context: x\ncontexts: [", "current-context: "+current+"\ncontexts: [{name: other, context: {cluster: d, user: u}}, ", 1))
		documenttest.Must(t, "WriteFile()", os.WriteFile(at, text, 0o600))
		return o
	}
	l := opened(t, write("x"))
	documenttest.GoesOn(t, l, func() {
		write("other")
		f.Cut()
	})
	other, otherKey := documenttest.Certificate(t)
	f.Renew(other, otherKey, "")
	for seq := range int64(3) {
		if err := l.Append(t.Context(), storetest.Grant("job", 100+seq)); err == nil {
			t.Error("a certificate of an unknown authority was accepted")
		}
	}
}

// kubeconfig writes one with a cluster c and a user u.
func kubeconfig(t *testing.T, at, form string, all ...any) Options {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n" + fmt.Sprintf(form, all...)
	documenttest.Must(t, "WriteFile()", os.WriteFile(at, []byte(text), 0o600))
	return Options{URI: "k8s:jobs?kubeconfig=" + at}
}
