package etcd

import (
	"strings"
	"testing"
)

func TestTheScriptOfInitGrantsTheWholePrefix(t *testing.T) {
	l, err := Open(t.Context(), Options{URI: "etcd://h/team/jobs", User: "app", Password: "c4n4ry"})
	must(t, "Open()", err)
	defer func() { _ = l.Close(t.Context()) }()
	got := l.InitScript()
	for _, want := range []string{"--prefix=true readwrite team/jobs/\n", "etcdctl user grant-role app slotlease\n"} {
		if !strings.Contains(got, want) || strings.Contains(got, "c4n4ry") {
			t.Errorf("InitScript() = %s, want %q in it, and no password", got, want)
		}
	}
}
