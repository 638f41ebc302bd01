package kubepeer

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
)

// ask is the status of a request by a user.
func ask(t *testing.T, s *Server, method, path, body, user string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+Token(user))
	req.Header.Set("Content-Type", "application/json")
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	reply, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	return reply.StatusCode
}

func TestARestartedServerKeepsItsPortAndObjects(t *testing.T) {
	t.Parallel()
	s := Start(t)
	addr := s.Addr()
	const at = "/api/v1/namespaces/default/configmaps"
	if got := ask(t, s, http.MethodPost, at, `{"metadata":{"name":"a"}}`, "admin"); got != http.StatusCreated {
		t.Errorf("a create by the admin = %d, want 201", got)
	}
	for _, user := range []string{"worker", "reader", "stranger"} {
		if got := ask(t, s, http.MethodGet, at+"/a", "", user); got != http.StatusForbidden {
			t.Errorf("a read by the %s = %d, want 403: it has no rights yet", user, got)
		}
	}
	s.Restart(t)
	if got := ask(t, s, http.MethodGet, at+"/a", "", "admin"); got != http.StatusOK || s.Addr() != addr {
		t.Errorf("after a restart at %s, from %s, a read = %d, want 200", s.Addr(), addr, got)
	}
}

func TestAllTestsShareAServer(t *testing.T) {
	t.Parallel()
	if a, b := Shared(t), Shared(t); a != b || a == "" {
		t.Errorf("Shared() = %s and %s, want one", a, b)
	}
}
