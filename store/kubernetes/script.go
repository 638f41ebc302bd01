package kubernetes

import (
	_ "embed"
	"strings"
)

// roles are those of workers, and of people who look.
//
//go:embed rbac.yaml
var roles string

// InitScript returns what Init does as commands for kubectl, and the roles of rbac.yaml.
func (l *Ledger) InitScript() string {
	name := l.c.namespace
	return "# for a shell with kubectl\nkubectl create namespace " + name + "\nkubectl apply -n " + name + " -f - <<'END'\n" + strings.TrimSpace(roles) + "\nEND\n"
}
