package guard

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAProgramIsFoundInThePathOfItsCommand(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "only-here")
	must(t, os.WriteFile(program, nil, 0o700))
	t.Chdir(dir)
	for _, test := range []struct {
		name string
		env  []string
		want string // empty: none
	}{
		{"only-here", []string{"PATH=/nowhere:" + dir}, program},
		{"only-here", []string{"PATH=" + dir, "PATH=/nowhere"}, ""},
		{"only-here", []string{"PATH=.::" + filepath.Base(dir)}, ""},
		{"only-here", []string{"PATH="}, ""},
		{"only-here", []string{"OTHER=" + dir}, ""},
		{"./only-here", []string{"PATH=/nowhere"}, "./only-here"},
		{"sh", nil, "/bin/sh"},
	} {
		got, err := Find(test.name, test.env)
		if base := filepath.Base(got); test.want == "" && err == nil || test.want != "" && (err != nil || base != filepath.Base(test.want)) || got != test.want && test.name != "sh" {
			t.Errorf("Find(%q, %q) = %q, %v, want %q", test.name, test.env, got, err, test.want)
		}
	}
}
