package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// installTime bounds one installation. A cold one takes about 25 s.
const installTime = 4 * time.Minute

// nodeVersion is the oldest major version of Node.js that scripts run on.
const nodeVersion = 18

// Script is a server that is a script for Node.js, with packages of npm.
type Script struct {
	// Name is the name of its package, and Title that of the peer in messages.
	Name, Title string
	// Source has the script, server/server.js, and its packages, server/package.json and server/package-lock.json.
	// The lockfile is made in that folder by
	//
	//	npm install --package-lock-only --omit-lockfile-registry-resolved
	//
	// and then freed of the field "funding" of each package, so that it names no addresses: npm ci takes the packages
	// from the registry that it is set to, and checks them by the lockfile's hashes.
	Source fs.FS
}

var scriptFiles = []string{"package.json", "package-lock.json", "server.js"}

// Install returns the path of the script in the user's cache folder, with its packages beside it. It is installed if it
// isn't there.
func (s Script) Install() (string, error) {
	if err := s.checkNode(); err != nil {
		return "", err
	}
	dir, err := CachePath(s.Name, scriptFiles, s.read)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "server.js"), Keep(dir, s.install)
}

func (s Script) read(name string) ([]byte, error) { return fs.ReadFile(s.Source, "server/"+name) }

func (s Script) checkNode() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return fmt.Errorf("the %s peer needs Node.js %d or newer with npm: %w", s.Title, nodeVersion, err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < nodeVersion {
		return fmt.Errorf("the %s peer needs Node.js %d or newer: node --version says %.20q", s.Title, nodeVersion, out)
	}
	return nil
}

// install makes the folder with the script and its packages.
func (s Script) install(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range scriptFiles {
		b, err := s.read(name)
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
		return errors.Join(fmt.Errorf("install the %s peer: npm ci: %w", s.Title, err), errors.New(strings.TrimSpace(string(out))))
	}
	return nil
}
