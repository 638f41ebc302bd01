package deploy

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/slotlease/slotlease/testutil/postgrespeer"
)

// composed is the project as docker compose reads it, against the schema of the specification.
func composed(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"compose/compose.yaml"}, cli.WithProfiles([]string{"*"}))
	must(t, err)
	project, err := options.LoadProject(t.Context())
	must(t, err)
	return project
}

func TestComposeRuns(t *testing.T) {
	p := composed(t)
	worker := p.Services["worker"]
	if r := worker.Deploy; r == nil || r.Replicas == nil || *r.Replicas != 3 {
		t.Error("there are not three workers")
	}
	jobs := worker.Volumes[0]
	expectReady(t, line{args: worker.Command, files: map[string]string{jobs.Target: read(t, jobs.Source)}})
	if uri := worker.Environment["LEASECTL_STORE"]; uri == nil || !strings.Contains(*uri, "@db/jobs") {
		t.Errorf("the workers use the store %v, want the service db", uri)
	}
}

// The three workers of the project, as processes on a PostgreSQL server: each run happens once, and goes on when one is killed.
func TestComposedWorkersRunEachJobOnce(t *testing.T) {
	uri := postgrespeer.Database(t)
	p := composed(t)
	env := append(os.Environ(), "LEASECTL_STORE="+uri)
	create := exec.Command(leasectl(t), p.Services["init"].Command...)
	create.Env = env
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	worker := p.Services["worker"]
	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, jobs, strings.ReplaceAll(read(t, worker.Volumes[0].Source), "every: 10s", "every: 2s"))
	var ticks ticks
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	workers := map[string]*exec.Cmd{}
	for _, name := range []string{"one", "two", "three"} {
		args := append(slices.Clone(worker.Command[:len(worker.Command)-1]), "--instance-id", name, jobs)
		args[slices.Index(args, "--listen")+1] = "127.0.0.1:0"
		cmd := exec.CommandContext(ctx, leasectl(t), args...)
		cmd.Env = env
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		workers[name] = cmd
		running.Go(func() {
			ticks.follow(out)
			_ = cmd.Wait() // killed
		})
	}
	by := ticks.await(t, 3)
	_ = workers[by].Process.Kill()
	seen := ticks.count()
	ticks.await(t, seen+3)
	if twice := ticks.twice(); twice != "" {
		t.Errorf("the tokens of the ticks are\n%s\nwant each once", twice)
	}
}

// ticks are the runs of the job tick that were seen: by whom, and under which token.
type ticks struct {
	sync.Mutex
	by, tokens []string
}

var tick = regexp.MustCompile(`tick, as (\S+) with token (\d+)`)

// follow reads the output of a worker to its end.
func (s *ticks) follow(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := tick.FindStringSubmatch(lines.Text()); m != nil {
			s.Lock()
			s.by, s.tokens = append(s.by, m[1]), append(s.tokens, m[2])
			s.Unlock()
		}
	}
}

func (s *ticks) count() int {
	s.Lock()
	defer s.Unlock()
	return len(s.tokens)
}

// await waits for so many ticks, and returns who had the last one.
func (s *ticks) await(t *testing.T, n int) (by string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); s.count() < n; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute there are %d ticks, want %d", s.count(), n)
		}
	}
	s.Lock()
	defer s.Unlock()
	return s.by[len(s.by)-1]
}

// twice is all tokens, if one is there twice.
func (s *ticks) twice() string {
	s.Lock()
	defer s.Unlock()
	sorted := slices.Sorted(slices.Values(s.tokens))
	if len(slices.Compact(slices.Clone(sorted))) == len(sorted) {
		return ""
	}
	return strings.Join(sorted, "\n")
}
