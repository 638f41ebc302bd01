package docs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/postgres"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/workerlease"
)

func run(ctx context.Context) error {
	ledger, err := postgres.Open(ctx, postgres.Options{URI: os.Getenv("DATABASE_URL")}) // or mongo, redis, …
	if err != nil {
		return err
	}
	defer ledger.Close(context.WithoutCancel(ctx))
	if err := ledger.Init(ctx); err != nil { // creates what is missing, and may be repeated
		return err
	}
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Logger: slog.Default()})
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
	t.Setenv("DATABASE_URL", postgrespeer.Database(t))
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := run(ctx); err != nil {
			t.Errorf("run() = %v, want nil", err)
		}
	}
}

// The program without its Init.
func TestAProgramOnADatabaseWithoutTablesIsToldWhatToDo(t *testing.T) {
	ledger, err := postgres.Open(t.Context(), postgres.Options{URI: postgrespeer.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close(context.WithoutCancel(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = workerlease.Run(ctx, ledger, workerlease.Options{WorkerType: "invoice-export"}, func(context.Context, workerlease.Lease) error { return nil })
	if !errors.Is(err, store.ErrMissing) || !strings.HasSuffix(err.Error(), "call the ledger's Init, which is safe to repeat, or run leasectl init") {
		t.Errorf("Run() = %v, want ErrMissing and what to do", err)
	}
}
