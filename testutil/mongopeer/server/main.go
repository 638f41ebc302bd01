// Command server is the MongoDB-compatible peer of slotlease's tests: FerretDB
// on SQLite, served over TCP on the loopback interface. It is a module of its
// own so that its dependencies never reach slotlease's.
//
// It prints its URI as the first line of its standard output. It ends on
// SIGTERM, SIGINT or SIGHUP and, so that it never outlives the program that
// started it, when its standard input ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	// A command leaves much garbage in a small heap. Collecting it as often as usual costs a third
	// of the processor's time.
	debug.SetGCPercent(400)
	if err := serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mongopeer:", err)
		os.Exit(1)
	}
}

func serve(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:0", "TCP `address` to listen on")
	data := flags.String("data", "", "existing `folder` for the data; one server per folder")
	remove := flags.Bool("remove", false, "remove the data folder on a regular end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *data == "" {
		return errors.New("no -data folder")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()

	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	f, err := ferretdb.New(&ferretdb.Config{
		Listener: ferretdb.ListenerConfig{TCP: *addr},
		Handler:  "sqlite",
		// Writes don't wait for the disk: the system keeps them if the server is killed, and no
		// test continues after a crash of the system.
		SQLiteURL: "file:" + filepath.ToSlash(*data) + "/?_pragma=synchronous(off)",
		Logger:    logger,
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	if _, err := fmt.Fprintln(stdout, f.MongoDBURI()); err != nil {
		return err
	}

	<-ctx.Done()
	// FerretDB waits for its clients to hang up; they needn't.
	select {
	case err = <-done:
	case <-time.After(500 * time.Millisecond):
	}
	if *remove {
		err = errors.Join(err, os.RemoveAll(*data))
	}
	return err
}
