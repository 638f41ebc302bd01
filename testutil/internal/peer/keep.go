package peer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// CachePath returns a path in the user's cache folder. Its name has the prefix and a
// hash of all parts of a program: its files, and the other values.
func CachePath(prefix string, files []string, read func(name string) ([]byte, error), also ...any) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if len(also) > 0 {
		_, _ = fmt.Fprintln(h, also...)
	}
	for _, name := range files {
		b, err := read(name)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(h, name, len(b))
		_, _ = h.Write(b)
	}
	return filepath.Join(cache, "slotlease", prefix+"-"+hex.EncodeToString(h.Sum(nil)[:8])), nil
}

// Keep makes the file or folder at a path unless it exists. If several processes need
// it at the same time, one makes it and the others wait. It is made in a temporary
// folder and then moved, so an interrupted attempt leaves nothing that looks finished.
func Keep(path string, make func(at string) error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	unlock, err := Lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have made it while this one waited.
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	dir, err := os.MkdirTemp(folder, "making-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made := filepath.Join(dir, filepath.Base(path))
	if err := make(made); err != nil {
		return err
	}
	if err := os.Rename(made, path); err != nil {
		// Where there is no file lock, another process may have come first.
		if _, missing := os.Stat(path); missing != nil {
			return err
		}
	}
	return nil
}
