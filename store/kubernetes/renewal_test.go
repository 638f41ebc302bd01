package kubernetes

import (
	"context"
	"encoding/base64"
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
			f.Renew(client, clientKey, "")
			documenttest.ComesToSay(t, "Append() to a server of another authority", func(ctx context.Context, _ int) error {
				return l.Append(ctx, storetest.Grant("job", 1))
			}, at[0], "can't be read now")
		})
	}
}

func TestCertificatesAreRenewedInTheKubeconfig(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "config")
	write := func(host string, files ...string) Options {
		all := []any{host}
		for _, path := range files {
			text, err := os.ReadFile(path)
			documenttest.Must(t, "ReadFile()", err)
			all = append(all, base64.StdEncoding.EncodeToString(text))
		}
		return kubeconfig(t, at, "clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}]\nusers: [{name: u, user: {client-certificate-data: %q, client-key-data: %q}}]\n", all...)
	}
	ca, key := documenttest.Certificate(t)
	client, clientKey := documenttest.Certificate(t, "worker")
	f := keeping(t, ca, key, client)
	l := opened(t, write("https://"+f.Addr, ca, client, clientKey))
	ca, key = documenttest.Certificate(t)
	client, clientKey = documenttest.Certificate(t, "worker")
	documenttest.GoesOn(t, l, func() {
		write("https://"+f.Addr, ca, client, clientKey)
		f.Renew(ca, key, client)
	})
}

// kubeconfig writes one with a cluster c and a user u.
func kubeconfig(t *testing.T, at, form string, all ...any) Options {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n" + fmt.Sprintf(form, all...)
	documenttest.Must(t, "WriteFile()", os.WriteFile(at, []byte(text), 0o600))
	return Options{URI: "k8s:jobs?kubeconfig=" + at}
}
