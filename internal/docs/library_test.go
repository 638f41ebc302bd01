package docs

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/workerlease"
)

func run(ctx context.Context) error {
	ledger, err := mongo.Open(ctx, mongo.Options{URI: os.Getenv("MONGODB_URI")}) // or postgres, redis, …
	if err != nil {
		return err
	}
	defer ledger.Close(context.WithoutCancel(ctx))
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: workerlease.LogToSlog(slog.Default())})
	options := workerlease.Options{WorkerType: "invoice-export", LeaseInterval: 5 * time.Minute}
	return client.Run(ctx, options, func(ctx context.Context, l workerlease.Lease) error {
		return exportInvoices(ctx, l.Token) // stops when ctx ends
	})
}

func exportInvoices(context.Context, int64) error { return nil }

func TestReadmeShowsTheCodeThatCompilesHere(t *testing.T) {
	source, err := os.ReadFile("library_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "func run(")
	code, _, _ = strings.Cut(code, "\n}\n")
	if code = "func run(" + code + "\n}\n"; !strings.Contains(read(t, "README.md").text, "```go\n"+code+"```") {
		t.Errorf("README.md doesn't show this code:\n%s", code)
	}
}

func TestReadmeExampleRuns(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Setenv("MONGODB_URI", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := run(ctx); err != nil {
		t.Errorf("run() = %v, want nil: a store that is down doesn't end leasing", err)
	}
}
