package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/leasectltest"
)

// api sends requests as the admin of a server.
type api struct {
	web    *http.Client
	config *rest.Config
}

func (a api) send(t *testing.T, path string, body any) (status int, reply []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.web.Post(a.config.Host+path, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	reply, err = io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, reply
}

// create demands that the server takes an object.
func (a api) create(t *testing.T, path string, body any) []byte {
	t.Helper()
	status, reply := a.send(t, path, body)
	if status != http.StatusCreated {
		t.Fatalf("POST %s = %d, %s, want 201", path, status, reply)
	}
	return reply
}

// documents are those of a file of manifests.
func documents(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, o)
	}
	return all
}

// The server takes the manifest, and what it starts works as its service account, by the rights of rbac.yaml alone. A kubelet
// isn't there: the test starts the program with the manifest's arguments, variables and probes.
func TestTheManifestWorksByTheRightsOfItsServiceAccount(t *testing.T) {
	t.Parallel()
	config, err := clientcmd.BuildConfigFromFlags("", kubepeer.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	a, namespace := api{web, config}, fmt.Sprintf("manifest-%d", namespaces.Add(1))
	a.create(t, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": namespace}})
	for _, o := range documents(t, "../rbac.yaml") {
		at := map[string]string{"Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles", "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings", "ServiceAccount": "/api/v1/namespaces/%s/serviceaccounts"}
		a.create(t, fmt.Sprintf(at[o["kind"].(string)], namespace), o)
	}
	const strict = "?fieldManager=test&fieldValidation=Strict"
	deployments := "/apis/apps/v1/namespaces/" + namespace + "/deployments" + strict
	manifest := documents(t, "deployment.yaml")[0]
	var made appsv1.Deployment
	if err := json.Unmarshal(a.create(t, deployments, manifest), &made); err != nil {
		t.Fatal(err)
	}
	manifest["spec"].(map[string]any)["replica"] = 1
	if status, reply := a.send(t, deployments, manifest); status != http.StatusBadRequest {
		t.Errorf("a manifest with a wrong field = %d, %s, want that the server looks at fields", status, reply)
	}
	pod := made.Spec.Template.Spec
	token := struct{ Status struct{ Token string } }{}
	at := "/api/v1/namespaces/" + namespace + "/serviceaccounts/" + pod.ServiceAccountName + "/token"
	if err := json.Unmarshal(a.create(t, at, map[string]any{"spec": map[string]any{"expirationSeconds": 3600}}), &token); err != nil {
		t.Fatal(err)
	}
	secret := token.Status.Token
	own := kubeconfig(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u","namespace":%q}}],
		"clusters":[{"name":"k","cluster":{"server":%q,"certificate-authority":%q}}],"users":[{"name":"u","user":{"token":%q}}]}`, namespace, config.Host, config.CAFile, secret))

	c := pod.Containers[0]
	env := []string{"KUBECONFIG=" + own}
	for _, v := range c.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	suites.Eventually(t, "the rights of the service account", func() bool { // The server takes them in by a watch.
		got := leasectltest.Leasectl(t, env, "doctor")
		if strings.Contains(got.Stdout+got.Stderr, secret) {
			t.Fatalf("leasectl doctor shows the token: %+v", got)
		}
		return got.Code == 0 && strings.Contains(got.Stdout, " 0 failed")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	args := slices.Clone(c.Command[1:])
	at = fmt.Sprintf("0.0.0.0:%d", c.Ports[0].ContainerPort)
	if !slices.Contains(args, at) {
		t.Fatalf("the container's command is %q, want that it listens at %s", c.Command, at)
	}
	args[slices.Index(args, at)] = addr
	args = append(args[:slices.Index(args, "--")], "-v", "--", "sh", "-c", "env; sleep 1000")
	p := leasectltest.Start(t, env, args...)
	suites.Eventually(t, "a lease", p.Began)
	for name, path := range map[string]string{"liveness": c.LivenessProbe.HTTPGet.Path, "readiness": c.ReadinessProbe.HTTPGet.Path} {
		suites.Eventually(t, "the probe of "+name, func() bool {
			reply, err := http.Get("http://" + addr + path)
			if err != nil {
				return false
			}
			_ = reply.Body.Close()
			return reply.StatusCode == http.StatusOK
		})
	}
	p.End()
	if got := p.Output(); strings.Contains(got, secret) || strings.Contains(got, "\nLEASECTL_STORE=") || !strings.Contains(got, "LEASE_TOKEN=") {
		t.Errorf("leasectl run shows the token, or gives the command the store's variable:\n%s", got)
	}
	if got := leasectltest.Leasectl(t, env, "verify"); got.Code != 0 || !strings.Contains(got.Stdout, "report: sound") {
		t.Errorf("leasectl verify = %+v, want a sound ledger", got)
	}
}
