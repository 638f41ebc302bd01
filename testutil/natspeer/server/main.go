// Command server is the NATS peer of slotlease's tests: a real nats-server with JetStream, which keeps its data in a folder and
// listens on the loopback interface. It is a module of its own so that its dependencies never reach slotlease's.
//
// It prints its URI as the first line of its standard output. It ends on SIGTERM, SIGINT or SIGHUP and, so that it never
// outlives the program that started it, when its standard input ends.
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
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "natspeer:", err)
		os.Exit(1)
	}
}

func serve(args []string, stdin io.Reader, stdout io.Writer) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:0", "TCP `address` to listen on")
	data := flags.String("data", "", "existing `folder` for the data; one server per folder")
	remove := flags.Bool("remove", false, "remove the data folder on a regular end")
	config := flags.String("config", "", "`file` with further settings, in the server's own language")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *data == "" {
		return errors.New("no -data folder")
	}
	signal.Ignore(syscall.SIGPIPE) // The server's log may have nobody who reads it, and the data is to be removed even so.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	s, err := start(*config, *data, *addr)
	if err != nil {
		return err
	}
	defer end(s)
	if !s.ReadyForConnections(30 * time.Second) {
		return errors.New("it takes no connections")
	}
	_, _ = fmt.Fprintf(stdout, "nats://%s\n", s.Addr())
	<-ctx.Done()
	end(s)
	if !*remove {
		return nil
	}
	// What the server still writes, if it hasn't ended, may come between the removal of the files and of their folder.
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err := os.RemoveAll(*data); err == nil || time.Since(began) > endTime {
			return err
		}
	}
}

// endTime bounds how long the server may take to end, and its folder to go.
const endTime = 5 * time.Second

// end ends a server. One whose end hangs, as once on a busy machine just after its start, ends with the process.
func end(s *server.Server) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Shutdown()
		s.WaitForShutdown()
	}()
	select {
	case <-ended:
	case <-time.After(endTime):
	}
}

// start starts a server with the settings of a file, at an address and in a folder.
func start(config, data, addr string) (*server.Server, error) {
	o := &server.Options{}
	if config != "" {
		if err := o.ProcessConfigFile(config); err != nil {
			return nil, err
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	o.Host = host
	if o.Port, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	o.JetStream, o.StoreDir, o.NoSigs = true, data, true
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.ConfigureLogger()
	s.Start()
	return s, nil
}
