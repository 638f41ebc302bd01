package deploy

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsimple"
)

// nomadJob is what the job uses of Nomad's language: anything else is an error.
type nomadJob struct {
	Job struct {
		Name  string `hcl:"name,label"`
		Type  string `hcl:"type"`
		Group struct {
			Name       string `hcl:"name,label"`
			Count      int    `hcl:"count"`
			Constraint struct {
				Operator string `hcl:"operator"`
				Value    string `hcl:"value"`
			} `hcl:"constraint,block"`
			Network struct {
				Port struct {
					Label string `hcl:"label,label"`
				} `hcl:"port,block"`
			} `hcl:"network,block"`
			Service struct {
				Name     string `hcl:"name"`
				Port     string `hcl:"port"`
				Provider string `hcl:"provider"`
				Check    struct {
					Type     string `hcl:"type"`
					Path     string `hcl:"path"`
					Interval string `hcl:"interval"`
					Timeout  string `hcl:"timeout"`
					Restart  struct {
						Limit int    `hcl:"limit"`
						Grace string `hcl:"grace"`
					} `hcl:"check_restart,block"`
				} `hcl:"check,block"`
			} `hcl:"service,block"`
			Task nomadTask `hcl:"task,block"`
		} `hcl:"group,block"`
	} `hcl:"job,block"`
}

type nomadTask struct {
	Name        string `hcl:"name,label"`
	Driver      string `hcl:"driver"`
	KillTimeout string `hcl:"kill_timeout"`
	Config      struct {
		Command string   `hcl:"command"`
		Args    []string `hcl:"args"`
	} `hcl:"config,block"`
	Template struct {
		Destination string `hcl:"destination"`
		Perms       string `hcl:"perms"`
		Data        string `hcl:"data"`
	} `hcl:"template,block"`
	Resources struct {
		CPU    int `hcl:"cpu"`
		Memory int `hcl:"memory"`
	} `hcl:"resources,block"`
}

func TestTheNomadJobRuns(t *testing.T) {
	// Nomad leaves the variables of its own runtime as they stand.
	text := strings.NewReplacer("${NOMAD_", "$${NOMAD_", "${node.", "$${node.").Replace(read(t, "nomad/poller.nomad.hcl"))
	var j nomadJob
	must(t, hclsimple.Decode("poller.nomad.hcl", []byte(text), nil, &j))
	task := j.Job.Group.Task
	if task.Config.Command != "/usr/bin/leasectl" || !strings.HasSuffix(after(t, task.Config.Args, "--store-file"), strings.TrimPrefix(task.Template.Destination, "secrets")) {
		t.Errorf("the task is %+v", task)
	}
	var args []string
	for _, arg := range task.Config.Args {
		args = append(args, strings.ReplaceAll(arg, "${node.unique.name}", "node-1"))
	}
	expectReady(t, line{args: args})
}
