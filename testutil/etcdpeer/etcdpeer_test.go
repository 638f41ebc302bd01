package etcdpeer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

// ask posts to etcd's gateway, which takes keys and values in base64, and is the reply.
func ask(ctx context.Context, uri, path, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http"+strings.TrimPrefix(uri, "etcd")+"v3/kv/"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, b)
	}
	return string(b), err
}

// holds reports whether the server has the key.
func holds(t *testing.T, uri string) bool {
	t.Helper()
	got, err := ask(t.Context(), uri, "range", `{"key":"YQ=="}`)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(got, `"value":"Yg=="`)
}

func TestARestartedServerKeepsItsPortAndData(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Flags: []string{"--max-request-bytes=65536"}})
	if _, err := ask(t.Context(), s.URI(), "put", `{"key":"YQ==","value":"`+strings.Repeat("Yg==", 30_000)+`"}`); err == nil {
		t.Error("a value of 90 kB is accepted, want what Options says")
	}
	if _, err := ask(t.Context(), s.URI(), "put", `{"key":"YQ==","value":"Yg=="}`); err != nil {
		t.Fatal(err)
	}
	peertest.RestartsAtItsAddress(t, s.Server)
	if !holds(t, s.URI()) {
		t.Error("after the restart the key is gone")
	}
	s.RestartEmpty()
	if holds(t, s.URI()) {
		t.Error("after RestartEmpty the key is there, want all data lost")
	}
}

func TestAPausedServerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	peertest.IsSilentWhilePaused(t, s.Server, func(ctx context.Context) error {
		_, err := ask(ctx, s.URI(), "range", `{"key":"YQ=="}`)
		return err
	})
}

func TestAllTestsShareAServer(t *testing.T) {
	t.Parallel()
	if holds(t, peertest.IsShared(t, Shared)) {
		t.Error("the shared server isn't empty")
	}
}

func TestTheServerEndsWithItsTestBinary(t *testing.T) {
	t.Parallel()
	peertest.EndsWithItsTestBinary(t, shared)
}
