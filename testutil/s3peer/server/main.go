// Command server is the S3 peer of slotlease's tests: Versity's gateway, with
// its objects in a folder, served over plain HTTP on the loopback interface. It
// is a module of its own so that its dependencies never reach slotlease's.
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
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

func main() {
	// The gateway writes notices to the standard output.
	stdout := os.Stdout
	os.Stdout = os.Stderr
	if err := serve(os.Args[1:], os.Stdin, stdout); err != nil {
		fmt.Fprintln(os.Stderr, "s3peer:", err)
		os.Exit(1)
	}
}

func serve(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:0", "TCP `address` to listen on")
	data := flags.String("data", "", "existing `folder` for the data; one server per folder")
	remove := flags.Bool("remove", false, "remove the data folder on a regular end")
	access := flags.String("access", "", "`id` of the owner's key; the secret is in S3PEER_SECRET")
	reader := flags.String("reader", "", "`id` of another user's key, with the same secret, who may do what a bucket's policy says")
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
	secret := os.Getenv("S3PEER_SECRET")
	backend, users, err := open(*data, auth.Account{Access: *access, Secret: secret, Role: auth.RoleAdmin}, *reader)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- listen(ctx, backend, users, *addr, *access, secret, stdout) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		// The gateway waits for its clients to hang up; they needn't.
		select {
		case <-done:
		case <-time.After(500 * time.Millisecond):
		}
	}
	if *remove {
		err = errors.Join(err, os.RemoveAll(*data))
	}
	return err
}

// open makes the backend in a folder, with the former versions of buckets that have versioning beside it. What isn't
// the content of an object is in attributes of its file: kept apart, a kill would leave some of objects that aren't
// there, whose names then count as taken. The other user is made unless the name is empty, or it is there.
func open(data string, owner auth.Account, other string) (*posix.Posix, auth.IAMService, error) {
	folder := func(name string) string { return filepath.Join(data, name) }
	for _, name := range []string{"buckets", "versions", "users"} {
		if err := os.MkdirAll(folder(name), 0o755); err != nil {
			return nil, nil, err
		}
	}
	users, err := auth.NewInternal(owner, folder("users"))
	if err != nil {
		return nil, nil, err
	}
	if other != "" {
		if err := users.CreateAccount(auth.Account{Access: other, Secret: owner.Secret, Role: auth.RoleUser}); err != nil && !errors.Is(err, auth.ErrUserExists) {
			return nil, nil, err
		}
	}
	if err := (meta.XattrMeta{}).Test(folder("buckets")); err != nil {
		return nil, nil, fmt.Errorf("the file system of %s: %w", data, err)
	}
	backend, err := posix.New(folder("buckets"), meta.XattrMeta{}, posix.PosixOpts{VersioningDir: folder("versions")})
	return backend, users, err
}

// listen serves the backend on an address until the context ends. The gateway doesn't say which port it took,
// so that one is chosen for it.
func listen(ctx context.Context, backend *posix.Posix, users auth.IAMService, addr, access, secret string, stdout io.Writer) error {
	chosen := addr
	for tries := 0; ; tries++ {
		if strings.HasSuffix(addr, ":0") {
			l, err := net.Listen("tcp", addr)
			if err != nil {
				return err
			}
			chosen = l.Addr().String()
			if err := l.Close(); err != nil {
				return err
			}
		}
		err := embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
			RootUserAccess: access, RootUserSecret: secret, IAMService: users,
			Ports: []string{chosen}, MaxConnections: 100_000, MaxRequests: 10_000, MultipartMaxParts: 1,
			KeepAlive: true, Quiet: true,
			S3Options: []s3api.Option{s3api.WithOnListen(func() { fmt.Fprintf(stdout, "http://%s\n", chosen) })},
		})
		if err == nil || chosen == addr || tries == 5 || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}
