// Command portable type-checks all packages and tests of the modules in the folders that its arguments name for other
// systems: those without Linux's files and calls, and one whose int has 32 bits.
//
// It does what go vet begins with when GOOS and GOARCH are set, but for a tenth of the processor time: go vet compiles
// each dependency for each system, and this reads it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/tools/go/packages"
)

// systems are all that behave differently for this code.
var systems = []struct{ os, arch string }{{"darwin", "arm64"}, {"windows", "amd64"}, {"linux", "386"}}

func main() {
	failed := false
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "portable: name the folders of modules")
		os.Exit(2)
	}
	for _, dir := range os.Args[1:] {
		for _, s := range systems {
			n, errs := check(dir, s.os, s.arch)
			for _, err := range errs {
				fmt.Fprintf(os.Stderr, "portable: %s/%s: %v\n", s.os, s.arch, err)
			}
			failed = failed || len(errs) > 0
			_, _ = fmt.Fprintf(os.Stdout, "%s on %s/%s: %d packages\n", filepath.Clean(dir), s.os, s.arch, n)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check type-checks the packages of a module, and returns how many there are.
func check(dir, system, arch string) (n int, errs []error) {
	all, err := packages.Load(&packages.Config{
		Mode:  packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		Tests: true,
	}, "./...")
	if err != nil {
		return 0, []error{err}
	}
	if len(all) == 0 {
		return 0, []error{fmt.Errorf("%s has no packages", dir)}
	}
	seen := map[string]bool{}
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if !seen[e.Error()] {
				seen[e.Error()] = true
				errs = append(errs, e)
			}
		}
	})
	return len(all), errs
}
