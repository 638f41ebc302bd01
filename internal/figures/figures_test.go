package figures_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/figures"
)

func TestSaveReplacesTheFiguresOfAnEarlierRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "anew")
	t.Setenv(figures.Variable, dir)
	for _, value := range []string{"1000", "2"} {
		p := figures.Proof{Name: "model", Command: "make model", Figures: []figures.Figure{{What: "states", Value: value}}}
		if err := figures.Save(p); err != nil {
			t.Fatalf("Save = %v", err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "model.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(data); !strings.Contains(got, `"value": "2"`) || strings.Contains(got, "1000") {
		t.Errorf("model.json = %s, want the second run's figures alone", got)
	}
}

func TestSaveWithoutADirectorySavesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(figures.Variable, "")
	if err := figures.Save(figures.Proof{Name: "model"}); err != nil {
		t.Errorf("Save = %v", err)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("files = %v, %v, want none", files, err)
	}
}
