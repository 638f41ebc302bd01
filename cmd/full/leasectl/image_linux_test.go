package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
)

const (
	// mostProgram bounds the program, in bytes: it is all that the image has.
	mostProgram = 45 << 20

	// enter starts the program in the folder $1 as a container does: as process 1, by the user of the image, in a root that can't
	// be written to, with /proc, /dev/null and a directory for temporary files.
	enter = `root=$1 && shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev/null "$root/dev/null"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
exec chroot --userspec=65532:65532 "$root" /leasectl "$@"`
)

func TestTheProgramAloneIsEnoughForAnImage(t *testing.T) {
	suites.Prove(t, "builds the program, and runs the demo")
	root := t.TempDir()
	for _, dir := range []string{"proc", "dev", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(root, "leasectl"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if built, err := os.Stat(filepath.Join(root, "leasectl")); err != nil {
		t.Fatal(err)
	} else if built.Size() > mostProgram {
		t.Errorf("the program has %d bytes, want at most %d", built.Size(), mostProgram)
	}
	isolated := []string{"--pid", "--mount", "--fork", "--kill-child", "sh", "-ec"}
	if out, err := exec.Command("unshare", append(isolated, "true")...).CombinedOutput(); err != nil {
		t.Skipf("no private namespaces, which root may make: %v: %s", err, out)
	}
	out, err := exec.Command("unshare", append(isolated, enter, "enter", root, "demo", "--slots", "6")...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "All as it should be") {
		t.Errorf("leasectl demo, in a root with nothing else: %v\n%s", err, out)
	}
}
