package priority_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/slotlease/slotlease/priority"
)

// offered are n types, each of which all members are candidates for.
func offered(n int, members ...string) map[string][]string {
	types := map[string][]string{}
	for i := range n {
		types[fmt.Sprintf("type-%d", i)] = members
	}
	return types
}

func named(n int) (members []string) {
	for i := range n {
		members = append(members, fmt.Sprintf("client-%d", i))
	}
	return members
}

func loads(to map[string]string) map[string]int {
	load := map[string]int{}
	for _, c := range to {
		load[c]++
	}
	return load
}

func TestTypesAreSpreadEvenly(t *testing.T) {
	for n := range 70 {
		for m := 1; m < 9; m++ {
			to := priority.Assign(offered(n, named(m)...))
			load := loads(to)
			for _, c := range named(m) {
				if load[c] < n/m || load[c] > (n+m-1)/m {
					t.Fatalf("%d types over %d: %s has %d: %v", n, m, c, load[c], load)
				}
			}
		}
	}
}

func TestAllComeToTheSameAssignment(t *testing.T) {
	want := priority.Assign(offered(64, named(5)...))
	drawn := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		members := named(5)
		drawn.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		if got := priority.Assign(offered(64, members...)); !maps.Equal(got, want) {
			t.Fatalf("with the candidates as %v: %v, want %v", members, got, want)
		}
	}
}

func TestMostTypesStayWhenACandidateComesOrGoes(t *testing.T) {
	for n := 2; n < 9; n++ {
		before, after := priority.Assign(offered(64, named(n)...)), priority.Assign(offered(64, named(n+1)...))
		moved := 0
		for workerType, c := range before {
			if after[workerType] != c {
				moved++
			}
		}
		// A new candidate must get 64/(n+1); as many again may move among the others, for an even share.
		if most := 2 * (64/(n+1) + 1); moved > most {
			t.Errorf("from %d to %d candidates, %d of 64 types move, want %d at most", n, n+1, moved, most)
		}
	}
}

func TestATypeGoesOnlyToItsCandidates(t *testing.T) {
	types := offered(9, named(3)...)
	types["lonely"], types["nobody"] = []string{"client-9"}, nil
	for i := range 20 {
		types[fmt.Sprintf("narrow-%d", i)] = []string{"client-0", "client-1"}
	}
	to := priority.Assign(types)
	for workerType, c := range to {
		if !slices.Contains(types[workerType], c) {
			t.Errorf("%s goes to %s, which is no candidate", workerType, c)
		}
	}
	if c, ok := to["nobody"]; ok || to["lonely"] != "client-9" || len(to) != len(types)-1 {
		t.Errorf("assigned %v (nobody: %s)", to, c)
	}
	if load := loads(to); load["client-0"]+load["client-1"]+load["client-2"] != 29 || max(load["client-0"], load["client-1"])-min(load["client-0"], load["client-1"]) > 1 {
		t.Errorf("loads %v", load)
	}
}
