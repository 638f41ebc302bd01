package cosmospeer

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/testutil/internal/peer"
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
// it. It is found once in each test binary. It wants the flags --port and --data, an
// existing folder; it prints its URI, with the scheme http, as its first line, and ends
// when its standard input does.
var program = sync.OnceValues(func() (string, error) {
	if err := checkNode(); err != nil {
		return "", err
	}
	read := func(name string) ([]byte, error) { return source.ReadFile("server/" + name) }
	dir, err := peer.CachePath("cosmospeer", sourceNames, read)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "server.js"), peer.Keep(dir, install)
})

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

// install makes the folder with the script and its packages.
func install(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range sourceNames {
		b, err := source.ReadFile("server/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NPM_CONFIG_UPDATE_NOTIFIER=false")
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("install the Cosmos DB peer: npm ci: %w", err), errors.New(strings.TrimSpace(string(out))))
	}
	return nil
}
