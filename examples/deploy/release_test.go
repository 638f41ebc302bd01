package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// The image that the chart, the manifests and the docs name is one that a release pushes.
func TestTheImageThatIsNamedIsReleased(t *testing.T) {
	var workflow struct {
		Jobs struct {
			Release struct {
				Steps []struct {
					ID, Run string
					With    struct{ Tags string }
				}
			}
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, "../../.github/workflows/release.yml")), &workflow))
	tags := func(version string) (pushed []string) {
		for _, step := range workflow.Jobs.Release.Steps {
			if step.ID == "image" {
				output := filepath.Join(t.TempDir(), "output")
				cmd := exec.Command("bash", "-ec", step.Run)
				cmd.Env = append(os.Environ(), "GITHUB_OUTPUT="+output, "GITHUB_REF_NAME="+version, "GITHUB_REPOSITORY_OWNER=slotlease")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				pushed = strings.Split(strings.TrimSpace(strings.TrimPrefix(read(t, output), "tags=")), ",")
			}
			step.With.Tags = strings.NewReplacer("${{ github.repository_owner }}", "slotlease", "${{ github.ref_name }}", version).Replace(step.With.Tags)
			if strings.HasPrefix(step.With.Tags, "ghcr.io") {
				pushed = append(pushed, step.With.Tags)
			}
		}
		return pushed
	}
	pushed := tags("v0.1.0")
	if before := tags("v0.1.0-rc.1"); slices.Contains(before, "ghcr.io/slotlease/leasectl:latest") {
		t.Errorf("a release candidate is pushed as %q", before)
	}
	out, err := helm(t, "template", "nightly", "chart", "--set", "store.uri=k8s:", "--set-json", `jobs=[{"name":"a","every":"1m","command":"true"}]`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	texts := map[string]string{"the chart": out}
	for _, pattern := range []string{"chart/*.yaml", "compose/*", "kubernetes/*", "../../docs/*.md", "../../cmd/full/Dockerfile"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			texts[path] = read(t, path)
		}
	}
	for place, text := range texts {
		for _, image := range regexp.MustCompile(`ghcr\.io/slotlease/leasectl\S*`).FindAllString(text, -1) {
			if image = strings.Trim(image, `"`); !strings.Contains(image, ":") {
				image += ":latest"
			}
			if strings.HasSuffix(place, "values.yaml") && image == "ghcr.io/slotlease/leasectl:latest" {
				continue // its tag is that of the chart
			}
			if !slices.Contains(pushed, image) {
				t.Errorf("%s names %s, but the release of v0.1.0 pushes %q", place, image, pushed)
			}
		}
	}
}
