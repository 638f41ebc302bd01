package workerlease_test

import (
	"context"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/workerlease"
)

func run(ctx context.Context) error {
	ledger, err := mongo.Open(ctx, mongo.Options{URI: os.Getenv("MONGODB_URI")})
	if err != nil {
		return err
	}
	defer ledger.Close(context.WithoutCancel(ctx))

	w, err := workerlease.StartLeasing(ctx, ledger, workerlease.Options{
		WorkerType:    "invoice-export",
		LeaseInterval: 5 * time.Minute,
		Priority:      0, // the highest
	}, workerlease.Callbacks{
		LeaseAllocated: func(ctx context.Context, l workerlease.Lease) {
			exportInvoices(ctx, l.Token) // stops when ctx ends
		},
		LeaseExpired: func(l workerlease.Lease, why workerlease.Reason) {
			log.Printf("slot %v is over: %s", l.Slot, why)
		},
	})
	if err != nil {
		return err // bad options, all of them at once
	}
	<-w.Done() // when ctx ends: stop, wait for the work, release
	return nil
}

func exportInvoices(context.Context, int64) {}

func TestReadmeShowsTheCodeThatCompilesHere(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "func run(")
	code, _, _ = strings.Cut(code, "\n}\n")
	if code = "func run(" + code + "\n}\n"; !strings.Contains(string(readme), "```go\n"+code+"```") {
		t.Errorf("README.md doesn't show this code:\n%s", code)
	}
}

func TestReadmeExampleRuns(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := run(ctx); err != nil {
		t.Errorf("run() = %v, want nil: a store that is down doesn't end leasing", err)
	}
}
