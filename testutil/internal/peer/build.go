package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// buildTime bounds one build. A cold one takes about 130 s on two cores.
const buildTime = 10 * time.Minute

// Module is a server that is a Go module of its own, in the folder testutil/NAME/server, so that its dependencies reach
// no user.
type Module struct {
	// Name is the folder's, Title that of the peer in messages.
	Name, Title string
	// Instead says what to do where the module is not, beside running in a checkout, such as "set MONGODB_URI to a
	// server". Optional.
	Instead string
}

// Build returns the path of the server's program in the user's cache folder. It is built if it isn't there.
func (m Module) Build() (string, error) {
	source, err := m.folder()
	if err != nil {
		return "", err
	}
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(source, name)) }
	path, err := CachePath(m.Name, []string{"go.mod", "go.sum", "main.go"}, read, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return path, Keep(path, func(at string) error { return m.build(source, at) })
}

// folder finds the module: near this file or, when the file's path was trimmed from the test binary, in a folder above
// the working one.
func (m Module) folder() (string, error) {
	below := filepath.Join("testutil", m.Name, "server")
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Join(filepath.Dir(file), "..", "..", "..", below); isModule(dir) {
			return dir, nil
		}
	}
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if dir := filepath.Join(at, below); isModule(dir) {
			return dir, nil
		}
		up := filepath.Dir(at)
		if up == at {
			what := "run in a checkout of slotlease"
			if m.Instead != "" {
				what = m.Instead + ", or " + what
			}
			return "", errors.New("the source of the " + m.Title + " is not here: " + what)
		}
		at = up
	}
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// build builds the program.
func (m Module) build(source, at string) error {
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", at, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the %s in %s: %w\n%s", m.Title, source, err, out)
	}
	return nil
}
