package guard

import (
	"maps"
	"slices"
	"strings"
)

// Environ is an environment with some variables, in place of what it had by their names.
func Environ(env []string, variables map[string]string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		_, ours := variables[name]
		return ours
	})
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		out = append(out, name+"="+variables[name])
	}
	return out
}
