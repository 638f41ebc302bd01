package named

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// Each URI in what users read or deploy, and in GitHub's workflows, is one that its store takes: nobody runs most of them.
func TestURIsThatAreShownAreTaken(t *testing.T) {
	at, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // for files of SQLite
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "PG") {
			t.Setenv(name, "") // Drivers read these themselves.
		}
	}
	open := func(uri string) error {
		keys := map[string]string{"COSMOS_KEY": "a2V5", "AZURE_STORAGE_KEY": "a2V5"}
		if strings.HasPrefix(uri, "cosmos:///") {
			keys = map[string]string{"COSMOS_CONNECTION_STRING": "AccountEndpoint=https://a.documents.azure.com:443/;AccountKey=a2V5;"}
		}
		l, err := store.Open(t.Context(), uri, store.OpenOptions{Getenv: func(name string) string { return keys[name] }})
		if err == nil {
			err = l.Close(t.Context())
		}
		return err
	}
	written := regexp.MustCompile("\\b(?:sqlite:|(?:" + strings.Join(store.Schemes(), "|") + ")://)[^\\s'\"`<>)|;\\]]*[^\\s'\"`<>)|;\\].,:/]")
	taken := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/stores/*.md", "examples/deploy/README.md", "examples/deploy/*/*", ".github/workflows/*.yml", "store/*/doc.go"} {
		files, err := fs.Glob(os.DirFS(at), pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, _ := os.ReadFile(filepath.Join(at, file)) // or a folder
			for _, uri := range written.FindAllString(string(text), -1) {
				if strings.ContainsAny(uri, "…${}*") || strings.Contains(uri, "://...") {
					continue // It stands for many.
				}
				if err := open(uri); err != nil {
					t.Errorf("%s shows %s, and its store says: %v", file, uri, err)
				}
				taken++
			}
		}
	}
	if taken < 40 {
		t.Errorf("%d URIs are shown, want all", taken)
	}
	if open("cosmos://127.0.0.1:8081/?insecure=true") == nil {
		t.Error("a parameter that no URI has is taken")
	}
}
