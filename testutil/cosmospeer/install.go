package cosmospeer

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/testutil/internal/process"
)

// installTime bounds one installation. A cold one takes about 20 s.
const installTime = 10 * time.Minute

// nodeVersion is the oldest major version of Node.js that the peer runs on.
const nodeVersion = 18

// The lockfile is made in the folder server by
//
//	npm install --package-lock-only --omit-lockfile-registry-resolved
//
// and then freed of the field "funding" of each package, so that it names no
// addresses: npm ci takes the packages from the registry that it is set to, and
// checks them by the lockfile's hashes.
//
//go:embed server/package.json server/package-lock.json server/server.js
var source embed.FS

var sourceNames = []string{"package.json", "package-lock.json", "server.js"}

// program is the path of the peer's script, with its packages installed beside
// it. It is found once in each test binary.
var program = sync.OnceValues(func() (string, error) {
	if err := checkNode(); err != nil {
		return "", err
	}
	dir, err := cachePath()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "server.js")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := process.Lock(filepath.Join(filepath.Dir(dir), "install.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	// Another test binary may have installed it while this one waited.
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, install(dir)
})

// Command is a command that runs the peer, installed if it has to be, for
// harnesses that aren't tests and run it as they like. It wants the flags --port
// and --data, an existing folder; it prints its URI, with the scheme http, as its
// first line, and ends when its standard input does.
func Command(flags ...string) (*exec.Cmd, error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	return exec.Command("node", append([]string{path}, flags...)...), nil
}

func checkNode() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return fmt.Errorf("the Cosmos DB peer needs Node.js %d or newer with npm: %w", nodeVersion, err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < nodeVersion {
		return fmt.Errorf("the Cosmos DB peer needs Node.js %d or newer: node --version says %.20q", nodeVersion, out)
	}
	return nil
}

// cachePath names the folder of the program by all that it is made of.
func cachePath() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, name := range sourceNames {
		b, err := source.ReadFile("server/" + name)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(h, name, len(b))
		_, _ = h.Write(b)
	}
	return filepath.Join(cache, "slotlease", "cosmospeer-"+hex.EncodeToString(h.Sum(nil)[:8])), nil
}

// install makes the folder beside its path and moves it there, so that an
// installation that is cut short leaves nothing that looks finished.
func install(dir string) error {
	made, err := os.MkdirTemp(filepath.Dir(dir), "install-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(made) }()
	for _, name := range sourceNames {
		b, err := source.ReadFile("server/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(made, name), b, 0o644); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = made
	cmd.Env = append(os.Environ(), "NPM_CONFIG_UPDATE_NOTIFIER=false")
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("install the Cosmos DB peer: npm ci: %w", err), errors.New(strings.TrimSpace(string(out))))
	}
	if err := os.Rename(made, dir); err != nil {
		// Where there is no file lock, another installation may have come first.
		if _, missing := os.Stat(filepath.Join(dir, "server.js")); missing != nil {
			return err
		}
	}
	return nil
}
