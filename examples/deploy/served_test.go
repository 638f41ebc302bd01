package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slotlease/slotlease/testutil/kubepeer"
)

// cluster is a real API server, with the rights of its administrator.
type cluster struct {
	config, url string
	web         *http.Client
}

// onClusters runs a test on the server that make kubernetes builds, as it is, and by the rules of the oldest version that
// it knows. Without one, the test is skipped.
func onClusters(t *testing.T, test func(*testing.T, cluster)) {
	for name, flags := range map[string][]string{"today": nil, "1.33": {"--emulated-version=1.33"}} {
		t.Run(name, func(t *testing.T) {
			c := cluster{config: kubepeer.Start(t, flags...).Kubeconfig()}
			config, err := clientcmd.BuildConfigFromFlags("", c.config)
			must(t, err)
			c.url = config.Host
			if c.web, err = rest.HTTPClientFor(config); err != nil {
				t.Fatal(err)
			}
			for _, ledger := range []string{"ledger", "42"} {
				c.namespace(t, ledger)
			}
			test(t, c)
		})
	}
}

// namespace creates one that takes only pods which are restricted as much as Kubernetes describes it, with the accounts
// that are there before a release.
func (c cluster) namespace(t *testing.T, name string) {
	t.Helper()
	c.create(t, "/api/v1/namespaces", fmt.Sprintf(`{metadata: {name: %q, labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted}}}`, name))
	for _, account := range []string{"default", "007"} {
		c.create(t, "/api/v1/namespaces/"+name+"/serviceaccounts", fmt.Sprintf(`{metadata: {name: %q}}`, account))
	}
}

// create has the server create an object, as it is written: with no field that the server doesn't know or that is there
// twice, and nothing that it warns of.
func (c cluster) create(t *testing.T, path, object string) {
	t.Helper()
	reply, err := c.web.Post(c.url+path+"?fieldValidation=Strict", "application/yaml", strings.NewReader(object))
	must(t, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	must(t, err)
	if warned := reply.Header.Values("Warning"); reply.StatusCode != http.StatusCreated || len(warned) > 0 {
		t.Errorf("%s: the API server answers %d, and warns %q: %s\n%s", path, reply.StatusCode, warned, text, object)
	}
}

// expectCreated has the server create each object of a text in a namespace, and then a pod of each template in it, which
// only a controller would.
func (c cluster) expectCreated(t *testing.T, namespace, text string) {
	t.Helper()
	for _, document := range documents(t, text) {
		for _, o := range objects(t, string(document)) {
			c.create(t, place(t, o, namespace), string(document))
		}
	}
	for _, template := range pods(objects(t, text)) {
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.GenerateName = "pod-"
		written, err := json.Marshal(pod)
		must(t, err)
		c.create(t, place(t, pod, namespace), string(written))
	}
}

// place is the path of what is like an object, in its own namespace or else another.
func place(t *testing.T, o runtime.Object, namespace string) string {
	t.Helper()
	m, err := meta.Accessor(o)
	must(t, err)
	if m.GetNamespace() != "" {
		namespace = m.GetNamespace()
	}
	kind := o.GetObjectKind().GroupVersionKind()
	root := "/apis/" + kind.Group
	if kind.Group == "" {
		root = "/api"
	}
	return fmt.Sprintf("%s/%s/namespaces/%s/%ss", root, kind.Version, namespace, strings.ToLower(kind.Kind))
}

func TestKubernetesCreatesTheManifestsAndTheirPods(t *testing.T) {
	onClusters(t, func(t *testing.T, c cluster) {
		for i, path := range files(t, "kubernetes/*.yaml") {
			namespace := fmt.Sprint("manifest-", i)
			c.namespace(t, namespace)
			c.expectCreated(t, namespace, read(t, path))
		}
	})
}

func TestKubernetesCreatesTheChartAndItsPods(t *testing.T) {
	onClusters(t, func(t *testing.T, c cluster) {
		for i, values := range files(t, "testdata/values-*.yaml") {
			for j, release := range []string{"nightly", "2024", "nightly.eu"} {
				namespace := fmt.Sprintf("%d%d", i, j)
				c.namespace(t, namespace)
				c.expectCreated(t, namespace, rendered(t, release, namespace, values))
			}
		}
	})
}

// A release is installed with some values, upgraded to all others and back, and then leaves nothing behind.
func TestTheChartIsInstalledUpgradedAndRemoved(t *testing.T) {
	onClusters(t, func(t *testing.T, c cluster) {
		c.namespace(t, "jobs")
		all := files(t, "testdata/values-*.yaml")
		for _, values := range append(all, all[0]) {
			out, err := helmOn(t, c.config, "upgrade", "--install", "nightly", "chart", "--namespace", "jobs", "-f", values)
			if err != nil || strings.Contains(strings.ToLower(out), "warning") {
				t.Errorf("%s: %v, want neither an error nor a warning\n%s", values, err, out)
			}
		}
		if n, want := c.count(t), len(objects(t, rendered(t, "nightly", "jobs", all[0]))); n != want {
			t.Errorf("the release has %d objects, want the %d of its text", n, want)
		}
		if out, err := helmOn(t, c.config, "uninstall", "nightly", "--namespace", "jobs"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if n := c.count(t); n > 0 {
			t.Errorf("%d objects of the release are left, want none", n)
		}
	})
}

// count is how many objects have the label of the release nightly.
func (c cluster) count(t *testing.T) (n int) {
	t.Helper()
	for _, path := range []string{
		"/api/v1/configmaps", "/api/v1/serviceaccounts", "/api/v1/services", "/apis/apps/v1/deployments", "/apis/policy/v1/poddisruptionbudgets",
		"/apis/rbac.authorization.k8s.io/v1/roles", "/apis/rbac.authorization.k8s.io/v1/rolebindings",
	} {
		reply, err := c.web.Get(c.url + path + "?labelSelector=app.kubernetes.io/instance=nightly")
		must(t, err)
		var list struct{ Items []any }
		var text bytes.Buffer
		_, err = text.ReadFrom(reply.Body)
		reply.Body.Close()
		if err == nil {
			err = json.Unmarshal(text.Bytes(), &list)
		}
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %s", path, err, &text)
		}
		n += len(list.Items)
	}
	return n
}
