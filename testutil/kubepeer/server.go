package kubepeer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// readyTime bounds how long a server may take from its first answer to its readiness.
const readyTime = time.Minute

// users are those of the kubeconfig, and the first may do everything.
var users = []string{"admin", "worker", "reader", "stranger"}

// Token is the token of a user.
func Token(user string) string { return "t0ken-of-" + user }

// kind runs servers over an etcd server.
func kind(etcd string, flags []string) peer.Kind {
	return peer.Kind{Name: "kubernetes", Title: "Kubernetes API", Program: func(port int, data string) (peer.Program, error) {
		path := os.Getenv("KUBE_APISERVER")
		if path == "" {
			var err error
			if path, err = peer.Find("kube-apiserver"); err != nil {
				return peer.Program{}, err
			}
		}
		if err := prepare(data, port); err != nil {
			return peer.Program{}, err
		}
		_, portText, _ := strings.Cut(peer.Local(port), ":")
		return peer.Program{
			Serve: append([]string{
				path, "--etcd-servers", "http://" + strings.Trim(strings.TrimPrefix(etcd, "etcd:"), "/"), "--etcd-prefix", "/registry-" + portText,
				"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", portText, "--cert-dir", data,
				"--service-account-key-file", filepath.Join(data, "sa.key"), "--service-account-signing-key-file", filepath.Join(data, "sa.key"),
				"--service-account-issuer", "https://kubernetes.default.svc", "--token-auth-file", filepath.Join(data, "tokens.csv"),
				"--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
			}, flags...),
			Ready: "Serving securely on",
		}, nil
	}}
}

// prepare makes the files of a server, unless it has them from an earlier run.
func prepare(data string, port int) error {
	var tokens strings.Builder
	for i, user := range users {
		group := ""
		if i == 0 {
			group = `,"system:masters"`
		}
		fmt.Fprintf(&tokens, "%s,%s,%d%s\n", Token(user), user, i, group)
	}
	config, err := configOf(peer.Local(port), data)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"tokens.csv": []byte(tokens.String()), "kubeconfig": config, "sa.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	} {
		path := filepath.Join(data, name)
		if _, err := os.Stat(path); err == nil && name == "sa.key" {
			continue
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Server is a separate server for one test: a process with the methods Addr, Kill, Restart, Pause and Resume, which don't
// touch its etcd server. They must not be called at once.
type Server struct {
	*peer.Server
	etcd *etcdpeer.Server
}

// Start starts a server with further flags, over an empty etcd server of its own. Both end with the test. It skips the
// test if no server can be had, or fails it if REQUIRE_STORES contains "kubernetes".
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	etcd := etcdpeer.Start(t, etcdpeer.Options{})
	s := &Server{kind(etcd.URI(), flags).Start(t), etcd}
	s.await(t)
	return s
}

// StartIn is Start for a harness that isn't a test, with the data of both servers in a folder that is empty. They
// end with the process. Its methods are End, Again, Freeze and Thaw then, in place of Kill, Restart,
// Pause and Resume.
func StartIn(data string, flags ...string) (*Server, error) {
	below, own := filepath.Join(data, "etcd"), filepath.Join(data, "kubernetes")
	for _, folder := range []string{below, own} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
	}
	etcd, err := etcdpeer.StartIn(below, etcdpeer.Options{})
	if err != nil {
		return nil, err
	}
	s, err := kind(etcd.URI(), flags).StartIn(own)
	if err == nil {
		err = await(s)
	}
	if err != nil {
		etcd.End()
		return nil, err
	}
	return &Server{s, etcd}, nil
}

// Again is Restart for a harness that isn't a test.
func (s *Server) Again() error {
	if err := s.Server.Again(); err != nil {
		return err
	}
	return await(s.Server)
}

// Restart starts the server again, on the same port and with what its etcd server has, and waits until it is ready.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Server.Restart()
	s.await(t)
}

// Etcd is the server's etcd server.
func (s *Server) Etcd() *etcdpeer.Server { return s.etcd }

// Kubeconfig is the path of the server's kubeconfig.
func (s *Server) Kubeconfig() string { return kubeconfig(s.Server) }

func kubeconfig(s *peer.Server) string { return filepath.Join(s.Data(), "kubeconfig") }

// Through writes a kubeconfig of the server at another address, such as that of a proxy on 127.0.0.1, and returns its path.
func (s *Server) Through(addr string) (path string, err error) {
	config, err := configOf(addr, s.Data())
	if err != nil {
		return "", err
	}
	path = filepath.Join(s.Data(), "kubeconfig-"+strings.ReplaceAll(addr, ":", "-"))
	return path, os.WriteFile(path, config, 0o600)
}

// configOf is the kubeconfig of a server at an address, with its data in a folder.
func configOf(addr, data string) ([]byte, error) {
	type (
		named map[string]any
		list  []named
	)
	var logins, contexts list
	for _, user := range users {
		logins = append(logins, named{"name": user, "user": named{"token": Token(user)}})
		contexts = append(contexts, named{"name": user, "context": named{"cluster": "peer", "user": user}})
	}
	return json.Marshal(named{
		"apiVersion": "v1", "kind": "Config", "users": logins, "contexts": contexts, "current-context": users[0],
		"clusters": list{{"name": "peer", "cluster": named{"server": "https://" + addr, "certificate-authority": filepath.Join(data, "apiserver.crt")}}},
	})
}

func (s *Server) await(t testing.TB) {
	t.Helper()
	if err := await(s.Server); err != nil {
		t.Fatal(err)
	}
}

// await waits until the server is ready: its default rights are there.
func await(s *peer.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	// The server made its certificate itself.
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.Addr()+"/readyz", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+Token(users[0]))
		reply, err := web.Do(req)
		if err == nil {
			_ = reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("status %d", reply.StatusCode)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the Kubernetes API server isn't ready after %v: %w", readyTime, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// etcdOfShared is set before the shared server is started.
var etcdOfShared string

var shared = sync.OnceValues(func() (*peer.Server, error) {
	s, err := kind(etcdOfShared, nil).StartShared()
	if err == nil {
		err = await(s)
	}
	return s, err
})

var sharing sync.Mutex

// Shared is the path of the kubeconfig of a server that all tests of this test binary share.
func Shared(t testing.TB) string {
	t.Helper()
	etcd := etcdpeer.Shared(t)
	sharing.Lock()
	defer sharing.Unlock()
	etcdOfShared = etcd
	s, err := shared()
	if err != nil {
		kind(etcd, nil).Unavailable(t, err)
	}
	return kubeconfig(s)
}
