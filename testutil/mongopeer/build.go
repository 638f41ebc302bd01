package mongopeer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// buildTime bounds one build. A cold one takes about 90 s on two cores.
const buildTime = 10 * time.Minute

// Program returns the path of the peer's program, built if it has to be, for
// harnesses that aren't tests and run it as they like. It wants the flags -addr
// and -data, prints its URI as its first line, and ends when its standard input
// does. It is found once in each test binary.
func Program() (string, error) { return program() }

var program = sync.OnceValues(func() (string, error) {
	source, err := sourceFolder()
	if err != nil {
		return "", err
	}
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(source, name)) }
	path, err := peer.CachePath("mongopeer", []string{"go.mod", "go.sum", "main.go"}, read, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return path, peer.Keep(path, func(at string) error { return build(source, at) })
})

// sourceFolder finds the peer's module: beside this file or, when the file's
// path was trimmed from the test binary, in a folder above the working one.
func sourceFolder() (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Join(filepath.Dir(file), "server"); isModule(dir) {
			return dir, nil
		}
	}
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if dir := filepath.Join(at, "testutil", "mongopeer", "server"); isModule(dir) {
			return dir, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", errors.New("the source of the test peer is not here: set MONGODB_URI to a server, or run in a checkout of slotlease")
		}
		at = up
	}
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// build builds the program.
func build(source, at string) error {
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", at, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the test peer in %s: %w\n%s", source, err, out)
	}
	return nil
}
