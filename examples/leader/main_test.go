package main

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func TestAnotherLeadsWhenTheLeaderHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		var leaders, events []string
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSpace(line)
			if node, rest, _ := strings.Cut(line, " "); !strings.HasPrefix(rest, "knows") {
				events = append(events, line)
				if rest == "leads" {
					leaders = append(leaders, node)
				}
			}
		}
		if len(leaders) != 2 || leaders[0] == leaders[1] {
			t.Fatalf("led by %q, want two, one after the other; output:\n%s", leaders, &out)
		}
		// Who sees it first, and who of equals is first, is chance.
		first, second := leaders[0], leaders[1]
		want := fmt.Sprintf("[%[1]s leads %[1]s leads no more: leasing stopped %[2]s leads %[2]s leads no more: leasing stopped]", first, second)
		if got := fmt.Sprint(events); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		for _, node := range []string{"anna", "ben", "cleo"} {
			for _, leader := range leaders {
				line := node + " knows that " + leader + " leads\n"
				left := node == first && leader == second
				if n := strings.Count(out.String(), line); left != (n == 0) || n > 1 {
					t.Errorf("%d times %q, want it once from each node that is still there; output:\n%s", n, line, &out)
				}
			}
		}
	})
}
