package docs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/postgres"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/workerlease"
)

// A new user's first program, on two stores: with slots that a test can wait for, its task runs, and the program ends in order.
func TestReadmeExampleRuns(t *testing.T) {
	const around = `package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/slotlease/slotlease/store/postgres"
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ended in order")
}

func exportInvoices(_ context.Context, token int64) error {
	fmt.Println("exported under", token)
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Signal(os.Interrupt)
	}
	return nil
}

`
	blocks := read(t, "README.md").blocks()
	i := slices.IndexFunc(blocks, func(b block) bool { return strings.HasPrefix(b.text, "func run(") })
	if i < 0 {
		t.Fatal("README.md has no program")
	}
	program := around + strings.Replace(blocks[i].text, "5 * time.Minute", "time.Second", 1)
	for name, uri := range map[string]func(testing.TB) string{"postgres": postgrespeer.Database, "redis": func(t testing.TB) string {
		return redispeer.Start(t, redispeer.Options{Flags: []string{"--appendonly", "yes"}}).URI()
	}} {
		t.Run(name, func(t *testing.T) {
			at := uri(t)
			file := filepath.Join(t.TempDir(), "main.go")
			must(t, os.WriteFile(file, []byte(strings.ReplaceAll(program, "postgres", name)), 0o600))
			for range 2 { // Init may be repeated.
				c := exec.CommandContext(t.Context(), "go", "run", file)
				c.Env = append(os.Environ(), "DATABASE_URL="+at)
				if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "exported under ") || !strings.Contains(string(out), "ended in order") {
					t.Errorf("the program of the README: %v, want that its task runs, and that it ends in order:\n%s", err, out)
				}
			}
		})
	}
}

// The program without its Init.
func TestAProgramOnADatabaseWithoutTablesIsToldWhatToDo(t *testing.T) {
	ledger, err := postgres.Open(t.Context(), postgres.Options{URI: postgrespeer.Database(t)})
	must(t, err)
	defer ledger.Close(context.WithoutCancel(t.Context()))
	err = workerlease.Run(suites.Deadline(t), ledger, workerlease.Options{WorkerType: "invoice-export"}, func(context.Context, workerlease.Lease) error { return nil })
	if !errors.Is(err, store.ErrMissing) || !strings.HasSuffix(err.Error(), "call the ledger's Init, which is safe to repeat, or run leasectl init") {
		t.Errorf("Run() = %v, want ErrMissing and what to do", err)
	}
}
