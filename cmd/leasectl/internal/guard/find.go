package guard

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Find finds a program as the command with this environment would: in its PATH, or in that of this process if it has none.
// Folders there that aren't absolute are left out, since a command may have another working directory. A name with a slash
// stays as it is, if it can be executed.
func Find(name string, env []string) (string, error) {
	path, is := "", false
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			path, is = value, true
		}
	}
	if !is || filepath.Base(name) != name || runtime.GOOS == "windows" {
		return exec.LookPath(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
