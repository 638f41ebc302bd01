package mongopeer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/slotlease/slotlease/testutil/internal/process"
)

// buildTime bounds one build. A cold one takes about 90 s on two cores.
const buildTime = 10 * time.Minute

// binary is the path of the peer's program, built if it has to be. It is found
// once in each test binary.
var binary = sync.OnceValues(func() (string, error) {
	source, err := sourceFolder()
	if err != nil {
		return "", err
	}
	path, err := cachePath(source)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	unlock, err := process.Lock(filepath.Join(filepath.Dir(path), "build.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	// Another test binary may have built it while this one waited.
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(source, path)
})

// Program returns the path of the peer's program, built if it has to be, for
// harnesses that aren't tests and run it as they like. It wants the flags -addr
// and -data, prints its URI as its first line, and ends when its standard input
// does.
func Program() (string, error) { return binary() }

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

// cachePath names the program by all that it is made of.
func cachePath(source string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, _ = fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		b, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(h, name, len(b))
		_, _ = h.Write(b)
	}
	name := "mongopeer-" + hex.EncodeToString(h.Sum(nil)[:8])
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(cache, "slotlease", name), nil
}

// build makes the program beside its path and moves it there, so that a build
// that is cut short leaves nothing that looks finished.
func build(source, path string) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), "build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made := filepath.Join(dir, filepath.Base(path))

	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", made, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the test peer in %s: %w\n%s", source, err, out)
	}
	if err := os.Rename(made, path); err != nil {
		// Where there is no file lock, another build may have come first.
		if _, missing := os.Stat(path); missing != nil {
			return err
		}
	}
	return nil
}
