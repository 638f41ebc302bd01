package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// documents are the parts of a text that aren't empty.
func documents(t *testing.T, text string) (all [][]byte) {
	t.Helper()
	for docs := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text))); ; {
		part := make([]byte, 1<<20)
		n, err := docs.Read(part)
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		if part = bytes.TrimSpace(part[:n]); len(part) > 0 {
			all = append(all, part)
		}
	}
}

// objects are those of a text, each by its own type: what isn't known, or is there twice, fails the test.
func objects(t *testing.T, text string) (all []runtime.Object) {
	t.Helper()
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for _, part := range documents(t, text) {
		object, _, err := decoder.Decode(part, nil, nil)
		if err != nil {
			t.Errorf("%v in\n%s", err, part)
			continue
		}
		all = append(all, object)
	}
	return all
}

// find is the only object of a type.
func find[T runtime.Object](t *testing.T, all []runtime.Object) (found T) {
	t.Helper()
	n := 0
	for _, o := range all {
		if o, ok := o.(T); ok {
			found, n = o, n+1
		}
	}
	if n != 1 {
		t.Fatalf("there are %d of %T, want 1", n, found)
	}
	return found
}

// pods are the templates of pods among objects.
func pods(all []runtime.Object) (found []corev1.PodTemplateSpec) {
	for _, o := range all {
		switch o := o.(type) {
		case *appsv1.Deployment:
			found = append(found, o.Spec.Template)
		case *batchv1.CronJob:
			found = append(found, o.Spec.JobTemplate.Spec.Template)
		}
	}
	return found
}

// expectPods runs what the pods run, with the files of their ConfigMaps, and expects that their probes ask for what is there.
func expectPods(t *testing.T, all []runtime.Object) {
	t.Helper()
	files := map[string]string{}
	for _, o := range all {
		if o, ok := o.(*corev1.ConfigMap); ok {
			for name, text := range o.Data {
				files["/etc/leasectl/"+name] = text
			}
		}
	}
	if len(pods(all)) == 0 {
		t.Error("there are no pods")
	}
	for _, pod := range pods(all) {
		c := pod.Spec.Containers[0]
		if c.Command[0] != "leasectl" {
			t.Fatalf("the container runs %q", c.Command)
		}
		var args []string
		for _, arg := range c.Command[1:] {
			args = append(args, strings.ReplaceAll(arg, "$(POD)", "pod-1"))
		}
		expectReady(t, line{args: args, files: files})
		if s := pod.Spec.TerminationGracePeriodSeconds; s == nil || *s <= 15 { // 5 s of grace, and 10 s
			t.Errorf("%s: terminationGracePeriodSeconds is %v, want more than 15", c.Name, s)
		}
		if s := c.SecurityContext; !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !*pod.Spec.SecurityContext.RunAsNonRoot {
			t.Errorf("%s: the container may do more than it needs", c.Name)
		}
		mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/run/secrets/store" })
		if slices.Contains(args, "--store-file") != mounted {
			t.Errorf("%s: the file of the store is not mounted, or for nothing: %q", c.Name, args)
		}
		if slices.Contains(args, "--once") || args[0] == "serve" {
			continue
		}
		for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			port := fmt.Sprint(c.Ports[0].ContainerPort)
			if probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != c.Ports[0].Name || after(t, args, "--listen") != "0.0.0.0:"+port {
				t.Errorf("%s: the probe %v asks for what isn't there", c.Name, probe)
			}
		}
	}
}

func TestManifestsOfKubernetesRun(t *testing.T) {
	for _, path := range files(t, "kubernetes/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			expectPods(t, objects(t, read(t, path)))
		})
	}
}

// helm runs helm as for a cluster of today, and returns what it writes.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return helmOn(t, "/dev/null", append(args, "--kube-version", "1.33.0")...)
}

// helmOn runs helm on the cluster of a kubeconfig.
func helmOn(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(program(t, "helm", ".", "helm.sh/helm/v3/cmd/helm"), args...)
	cmd.Env = append(cmd.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// rendered is what a release of the chart consists of.
func rendered(t *testing.T, release, namespace, values string) string {
	t.Helper()
	out, err := helm(t, "template", release, "chart", "--namespace", namespace, "-f", values)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func TestTheChartRuns(t *testing.T) {
	for _, values := range files(t, "testdata/values-*.yaml") {
		t.Run(filepath.Base(values), func(t *testing.T) {
			t.Parallel()
			if out, err := helm(t, "lint", "--strict", "-f", values, "chart"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			expectPods(t, objects(t, rendered(t, "nightly", "jobs", values)))
		})
	}
}

// Helm takes names for a release that YAML takes for numbers, and that a Service may not have.
func TestTheChartMayHaveAnyNameThatHelmTakes(t *testing.T) {
	for release, want := range map[string]string{"2024": "leasectl-2024-leasectl-page", "nightly.eu": "nightly-eu-leasectl-page", "leasectl": "leasectl-page"} {
		all := objects(t, rendered(t, release, "7", "testdata/values-own.yaml"))
		if got := find[*corev1.Service](t, all); got.Name != want || got.Labels["app.kubernetes.io/instance"] != release {
			t.Errorf("the Service of the release %s is %v, want %s", release, got.ObjectMeta, want)
		}
	}
}

// The chart's role is the one that the store of Kubernetes documents, and there is none for another store.
func TestTheChartGrantsWhatTheStoreNeeds(t *testing.T) {
	var want *rbacv1.Role
	for _, o := range objects(t, read(t, "../../store/kubernetes/rbac.yaml")) {
		if r, ok := o.(*rbacv1.Role); ok && r.Name == "slotlease-worker" {
			want = r
		}
	}
	if got := find[*rbacv1.Role](t, objects(t, rendered(t, "nightly", "jobs", "testdata/values-kubernetes.yaml"))); !reflect.DeepEqual(got.Rules, want.Rules) || got.Namespace != "ledger" {
		t.Errorf("the chart grants %v in %s, want %v in the namespace of the ledger", got.Rules, got.Namespace, want.Rules)
	}
	if out := rendered(t, "nightly", "jobs", "testdata/values-postgres.yaml"); strings.Contains(out, "Role") {
		t.Errorf("there is a role, want none\n%s", out)
	}
}

// The keys of jobs that the chart takes are those of jobs.yaml.
func TestTheChartKnowsTheKeysOfJobs(t *testing.T) {
	var docs struct {
		Properties struct {
			Jobs struct {
				Items struct{ Properties map[string]any }
			}
		}
	}
	var chart struct {
		Definitions struct{ Key struct{ Enum []string } }
	}
	must(t, yaml.Unmarshal([]byte(read(t, "../../docs/jobs.schema.json")), &docs))
	must(t, yaml.Unmarshal([]byte(read(t, "chart/values.schema.json")), &chart))
	got, want := slices.Sorted(slices.Values(chart.Definitions.Key.Enum)), slices.Sorted(maps.Keys(docs.Properties.Jobs.Items.Properties))
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("the schema of the chart has the keys\n%q, and that of jobs.yaml\n%q", got, want)
	}
}

// A pod whose store is the API server has a token, whoever granted the rights.
func TestPodsHaveATokenWhereTheirStoreAsksForOne(t *testing.T) {
	for store, want := range map[string]bool{"store.uri=k8s:ledger": true, "store.existingSecret=leasectl": false, "store.existingSecret=leasectl,serviceAccount.automount=true": true} {
		set := "serviceAccount.create=false,serviceAccount.name=granted," + store
		out, err := helm(t, "template", "nightly", "chart", "--set", set, "--set-json", `jobs=[{"name":"a","every":"1m","command":"true"}]`)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := find[*appsv1.Deployment](t, objects(t, out)).Spec.Template.Spec.AutomountServiceAccountToken; got == nil || *got != want {
			t.Errorf("with %s automountServiceAccountToken is %v, want %v", set, got, want)
		}
	}
}

// A chart without what it needs, or with a value that it doesn't know, says so.
func TestTheChartRefusesWhatItCannotRun(t *testing.T) {
	for _, test := range []struct {
		set  []string
		want string
	}{
		{nil, "there is nothing to run: set jobs"},
		{[]string{"--set-json", `jobs=[{"name":"a","every":"1m","command":"true"}]`}, "name the store: set store.existingSecret, or store.uri"},
		{[]string{"--set-json", `jobs=[{"name":"a","every":"1m","command":"true"}]`, "--set", "store.uri=k8s:,page.enabled=true"}, "set page.tokenSecret"},
		{[]string{"--set", "replica=3"}, "replica"},
		{[]string{"--set-json", `jobs=[{"name":"a"}]`, "--set", "store.uri=k8s:"}, "command"},
		{[]string{"--set-json", `jobs=[{"name":"a","evry":"1m","command":"true"}]`, "--set", "store.uri=k8s:"}, "evry"},
		{[]string{"--set-json", `jobs=[{"name":"a","every":"1m","command":"true"}]`, "--set", "store.uri=k8s:,store.existingSecret=leasectl"}, "not both"},
		{[]string{"--set-json", `jobs=[{"name":"a","every":"1m","command":"true"}]`, "--set", "store.uri=postgres://jobs:secret@db/jobs"}, "store.uri has a password"},
		{[]string{"--set-json", `jobs=[{"name":"a","every":"1m","command":"true"}]`, "--set", "store.uri=postgres://db/jobs?password=secret"}, "store.uri has a password"},
	} {
		if out, err := helm(t, append([]string{"template", "nightly", "chart"}, test.set...)...); err == nil || !strings.Contains(out, test.want) {
			t.Errorf("helm template %q: %v, want an error with %q\n%s", test.set, err, test.want, out)
		}
	}
}
