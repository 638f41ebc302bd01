package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// instrumented are the packages that inputs pass through.
var instrumented = []string{
	"github.com/slotlease/slotlease/...",
	"github.com/robfig/cron/...",
	"github.com/spf13/...",
	"go.mongodb.org/mongo-driver/v2/bson",
	"go.mongodb.org/mongo-driver/v2/x/bsonx/...",
	"encoding/json",
	"net/url",
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir           string
	TestGoFiles, XTestGoFiles []string
}

// target is a fuzz target.
type target struct {
	pkg  listed
	name string
}

// String is the package, without the module, and the name.
func (t target) String() string {
	_, short, _ := strings.Cut(t.pkg.ImportPath, "slotlease/slotlease/")
	return short + "." + t.name
}

// declared finds the targets in a file.
var declared = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// find lists the targets, in the order of packages and files.
func find(ctx context.Context, o options) ([]target, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, o.packages...)...)
	list.Stderr = os.Stderr
	data, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var found []target
	for reader := json.NewDecoder(bytes.NewReader(data)); ; {
		var p listed
		if err := reader.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			for _, match := range declared.FindAllSubmatch(text, -1) {
				if t := (target{p, string(match[1])}); o.only.MatchString(t.String()) {
					found = append(found, t)
				}
			}
		}
	}
}

// binary is where the test binary of the target's package is built.
func (t target) binary(dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(t.pkg.ImportPath, "/", "_")+".test")
}

// build makes the test binary.
func (t target) build(ctx context.Context, dir string) error {
	args := []string{"test", "-c", "-o", t.binary(dir)}
	for _, p := range instrumented {
		args = append(args, "-gcflags="+p+"=-d=libfuzzer")
	}
	build := exec.CommandContext(ctx, "go", append(args, t.pkg.ImportPath)...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", t.pkg.ImportPath, err, out)
	}
	return nil
}

// fuzz runs the target. That it fails is no error but part of the result.
func (t target) fuzz(ctx context.Context, dir string, o options) (result, error) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return result{}, fmt.Errorf("go env: %w", err)
	}
	// Where go test -fuzz keeps them.
	corpus := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", filepath.FromSlash(t.pkg.ImportPath))
	if err := os.MkdirAll(corpus, 0o755); err != nil {
		return result{}, err
	}
	c := exec.CommandContext(ctx, t.binary(dir), "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+o.n, "-test.timeout=0",
		"-test.fuzzcachedir="+corpus, "-test.fuzzminimizetime=10x", "-test.parallel="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	c.Dir = t.pkg.Dir
	// Each execution switches between goroutines. Between processors that costs a third
	// of the time, and the other processes need them anyway.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=800")
	// The coordinator ends its processes, and saves its findings.
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return result{}, fmt.Errorf("%v: %w", t, context.Cause(ctx))
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		return result{}, fmt.Errorf("%v: %w", t, err)
	}
	r := read(t, string(out))
	if failed && !r.ranOut {
		r.failure = fmt.Sprintf("%v\n%s", exit, out)
	}
	return r, nil
}
