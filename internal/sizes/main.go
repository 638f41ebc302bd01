// Command sizes prints what each store adds to a program: a table of Markdown, with the size of a
// program that opens the store and starts a worker, and the number of packages that it consists of,
// those of Go's own library included:
//
//	go run ./internal/sizes
//
// With the argument code, it prints how much code each folder has instead: its files, lines of code, of comments and of tests,
// functions over the budget, and exported names.
//
// It runs at the top of the source tree, and builds each program as users may: with
// -ldflags='-s -w' and without cgo.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// user is a program that uses a store.
type user struct {
	store string
	dir   string // of its module; empty: this one
	tags  string // that the build takes
	open  string // the expression that opens a ledger, and an error; empty: store.Open of a URI
}

var users = []user{
	{store: "memory", open: "memory.New(memory.Options{}), error(nil)"},
	{store: "sqlite", open: `sqlite.Open(ctx, sqlite.Options{Path: os.Args[1]})`},
	{store: "mongo", open: `mongo.Open(ctx, mongo.Options{URI: os.Args[1]})`},
	{store: "cosmos", open: `cosmos.Open(ctx, cosmos.Options{URI: os.Args[1]})`},
	{store: "postgres"},
	{store: "mysql"},
	{store: "sqlserver", tags: "sqlserver"},
	{store: "redis"},
	{store: "s3"},
	{store: "azblob"},
	{store: "etcd", dir: "store/etcd"},
	{store: "kubernetes", dir: "store/kubernetes"},
	{store: "nats", dir: "store/nats"},
}

func main() {
	do := run
	if len(os.Args) > 1 && os.Args[1] == "code" {
		do = func(w io.Writer) error { return printCode(w, ".") }
	}
	if err := do(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "slotlease-sizes-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := io.WriteString(w, "| Store | Program | Packages |\n|---|---|---|\n"); err != nil {
		return err
	}
	for _, u := range users {
		main := filepath.Join(dir, "main.go")
		if err := os.WriteFile(main, []byte(u.source()), 0o600); err != nil {
			return err
		}
		if err := row(w, "`store/"+u.store+"`", cmp.Or(u.dir, "."), u.tags, main, filepath.Join(dir, "program")); err != nil {
			return err
		}
	}
	for _, l := range leasectls {
		if err := row(w, l.name, l.dir, l.tags, l.program, filepath.Join(dir, "program")); err != nil {
			return err
		}
	}
	return nil
}

// leasectls are the programs of that name: the one of this module, and those of the stores that are modules of their own.
var leasectls = []struct{ name, dir, tags, program string }{
	{"`leasectl`, all but SQL Server, etcd, Kubernetes and NATS", ".", "", "./cmd/leasectl"},
	{"`leasectl` with the tag `lite`: SQLite, PostgreSQL, MySQL, Redis and MongoDB", ".", "lite", "./cmd/leasectl"},
	{"`leasectl` of `store/etcd`: with etcd, too", "store/etcd", "", "./leasectl"},
	{"`leasectl` of `store/kubernetes`: with Kubernetes, too", "store/kubernetes", "", "./leasectl"},
	{"`leasectl` of `store/nats`: with NATS, too", "store/nats", "", "./leasectl"},
	{"`leasectl` of `cmd/full`, which is released: all but SQL Server", "cmd/full", "grpcnotrace", "./leasectl"},
}

// row builds a program in a folder, and prints what it is.
func row(w io.Writer, name, folder, tags, program, at string) error {
	if _, err := goCommand(folder, "build", "-tags="+tags, "-ldflags=-s -w", "-o", at, program); err != nil {
		return err
	}
	built, err := os.Stat(at)
	if err != nil {
		return err
	}
	packages, err := goCommand(folder, "list", "-tags="+tags, "-deps", program)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "| %s | %.1f MB | %d |\n", name, float64(built.Size())/1e6, bytes.Count(packages, []byte("\n")))
	return err
}

// goCommand is the output of a go command.
func goCommand(folder string, args ...string) ([]byte, error) {
	c := exec.Command("go", args...)
	c.Dir = folder
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	var log bytes.Buffer
	c.Stderr = &log
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), folder, err, &log)
	}
	return out, nil
}

// source is the program.
func (u user) source() string {
	open, imports := u.open, fmt.Sprintf("%q", "github.com/slotlease/slotlease/store/"+u.store)
	if open == "" {
		open = "store.Open(ctx, os.Args[1], store.OpenOptions{})"
		imports = "\"github.com/slotlease/slotlease/store\"\n\t_ " + imports
	}
	return fmt.Sprintf(`package main

import (
	"context"
	"log"
	"os"

	%s
	"github.com/slotlease/slotlease/workerlease"
)

func main() {
	ctx := context.Background()
	ledger, err := %s
	if err != nil {
		log.Fatal(err)
	}
	_, err = workerlease.StartLeasing(ctx, ledger, workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{
		LeaseAllocated: func(_ context.Context, l workerlease.Lease) { log.Print(l.Token, os.Args) },
	})
	if err != nil {
		log.Fatal(err)
	}
	select {}
}
`, imports, open)
}
