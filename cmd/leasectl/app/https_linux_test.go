package app

import (
	"bytes"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

// before is a server in front of another one, which has yet to be started. Requests keep their Host, which signatures cover.
func before(t *testing.T, plain string) *httptest.Server {
	t.Helper()
	to, err := url.Parse(plain)
	must(t, err)
	relay := httptest.NewUnstartedServer(nil)
	relay.Config.Handler = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(reply *http.Response) error { // An account's reply says where its regions are.
			if reply.Request.URL.Path != "/" {
				return nil
			}
			body, err := io.ReadAll(reply.Body)
			body = bytes.ReplaceAll(body, []byte(to.Host), []byte(relay.Listener.Addr().String()))
			reply.Body, reply.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			reply.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return err
		},
	}
	t.Cleanup(relay.Close)
	return relay
}

// The services of clouds, and what stands in for them elsewhere, are reached by https, over which drivers send other requests. What has
// a name of another machine is reached by the proxy of the environment, so that all stays on this one.
func TestAStoreIsReachedByWhoTrustsItsCertificateOrDoesWithoutOne(t *testing.T) {
	t.Parallel()
	proveProcesses(t)
	aws := []string{"AWS_ACCESS_KEY_ID=" + s3peer.ID, "AWS_SECRET_ACCESS_KEY=" + s3peer.Secret, "AWS_CA_BUNDLE=", "http_proxy=http://HOST", "no_proxy="}
	azure := []string{"AZURE_STORAGE_KEY=" + azuritepeer.Key, "http_proxy=http://HOST", "no_proxy="}
	account := func(t testing.TB) string {
		t.Helper()
		return "http://" + cosmospeer.Start(t, cosmospeer.Options{}).Addr()
	}
	const (
		bucket, container   = "s3://NAME/jobs?pathStyle=true&serverSkew=777ms&endpoint=", "azblob://" + azuritepeer.Account + "/NAME/jobs?serverSkew=777ms&endpoint="
		here, cosmos        = "https%3A%2F%2FHOST", "cosmos://HOST/NAME/jobs?serverSkew=777ms"
		bucketAt, accountAt = bucket + "http%3A%2F%2Fs3.example%3A9000", container + "http%3A%2F%2F" + azuritepeer.Account + ".blob.example"
		trust, verified     = "SSL_CERT_FILE=CERT", "server's certificate is verified"
		allowed, must       = "&insecureHTTP=true", "insecureHTTP=true must be given"
	)
	for name, c := range map[string]struct {
		plain            func(t testing.TB) string
		http             int // 0: without TLS
		uri              string
		env              []string
		allow            string // is added to the environment, or to the URI, so that it isn't refused
		refused, doctors string
	}{
		"S3":                         {s3peer.Shared, 1, bucket + here, aws, trust, "in place of the system's", verified},
		"S3 by a bundle":             {s3peer.Shared, 2, bucket + here, aws, "AWS_CA_BUNDLE=CERT", "AWS_CA_BUNDLE names", verified},
		"S3 without TLS":             {s3peer.Shared, 0, bucketAt, aws, allowed, must, "not encrypted (insecureHTTP)"},
		"Azure Blob Storage":         {azuritepeer.Shared, 2, container + here, azure, trust, "by SSL_CERT_FILE", verified},
		"Azure Blob Storage, no TLS": {azuritepeer.Shared, 0, accountAt, azure, allowed, must, "not encrypted (insecureHTTP)"},
		"Cosmos DB":                  {account, 1, cosmos, nil, trust, "by SSL_CERT_FILE", verified},
		"Cosmos DB by HTTP/2":        {account, 2, cosmos, nil, trust, "by SSL_CERT_FILE", verified},
		"Cosmos DB, not verified":    {account, 1, cosmos, nil, "&insecureSkipVerify=true", "by SSL_CERT_FILE", "isn't verified (insecureSkipVerify)"},
	} {
		t.Run(name, func(t *testing.T) {
			relay := before(t, c.plain(t))
			filled := strings.NewReplacer("HOST", relay.Listener.Addr().String(), "NAME", strings.ToLower(rand.Text()))
			if relay.EnableHTTP2 = c.http == 2; c.http == 0 { // as many proxies do
				relay.Start()
			} else {
				relay.StartTLS()
				c.allow = strings.Replace(c.allow, "=CERT", "="+fileOf(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: relay.Certificate().Raw}))), 1)
			}
			env := []string{storeuri.Variable + "=" + filled.Replace(c.uri)}
			for _, pair := range c.env {
				env = append(env, filled.Replace(pair))
			}
			wants := func(code int, command string, says ...string) {
				t.Helper()
				p := startIn(t, env, strings.Fields(command)...)
				got, lacks := p.wait(), func(text string) bool { return !strings.Contains(p.output(), text) }
				if got != code || slices.ContainsFunc(says, lacks) || !lacks("lets this machine in") {
					t.Errorf("leasectl %s = %d, want %d and %q:\n%s", command, got, code, says, p.output())
				}
			}
			if c.http == 0 {
				wants(exit.Usage, "init", c.refused)
			} else {
				wants(exit.Unreachable, "init", c.refused, "certificate signed by unknown authority")
			}
			if strings.HasPrefix(c.allow, "&") {
				env[0] += c.allow
			} else {
				env = append(env, c.allow)
			}
			wants(exit.OK, "init", "created the ledger")
			wants(exit.OK, "run --worker-type t --every 24h --once --timeout 60s -- env", "LEASE_TOKEN=")
			wants(exit.OK, "doctor", c.doctors, "777ms at most (serverSkew)")
		})
	}
}
