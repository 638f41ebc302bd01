//go:build linux

package promtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/otellease"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

// interval is the length of slots.
const interval = 8 * time.Second

// A process of this test binary is a worker if roleVariable says by what it is observed: "promlease" or "otellease".
const (
	roleVariable   = "PROMTEST_ROLE"
	ledgerVariable = "PROMTEST_LEDGER"
	unfitVariable  = "PROMTEST_UNFIT" // it is not eligible, if set
	jobVariable    = "PROMTEST_JOB"   // it has a job, whose runs do what this file says
)

// What a run of a job may do.
const (
	succeeds = "succeed"
	fails    = "fail"
	overruns = "overrun" // it takes several slots
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := work(role); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work is a worker process. It writes where its metrics are, and ends when its standard input does.
func work(role string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	registry := prometheus.NewRegistry()
	observer, err := observerOf(role, registry)
	if err != nil {
		return err
	}
	ledger, err := sqlite.Open(ctx, sqlite.Options{Path: os.Getenv(ledgerVariable)})
	if err != nil {
		return err
	}
	defer ledger.Close(context.WithoutCancel(ctx))
	if err := ledger.Init(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})) }()
	fmt.Println(listener.Addr())
	options := workerlease.Options{WorkerType: "report", InstanceID: role, LeaseInterval: interval}
	if os.Getenv(unfitVariable) != "" {
		options.Eligible = func(context.Context) error { return errors.New("its disk is full") }
	}
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: observer})
	if file := os.Getenv(jobVariable); file != "" {
		options.Job = &workerlease.Job{MaxAttempts: 2, MinRetry: 10 * time.Millisecond}
		return client.Run(ctx, options, func(ctx context.Context, _ workerlease.Lease) error { return job(ctx, file) })
	}
	return client.Run(ctx, options, func(ctx context.Context, _ workerlease.Lease) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

// job is a run of a job.
func job(ctx context.Context, file string) error {
	does, err := os.ReadFile(file)
	switch {
	case err != nil:
		return err
	case string(does) == fails:
		return errors.New("its disk is full")
	case string(does) == overruns:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(7 * interval / 2):
		}
	}
	return nil
}

func observerOf(role string, r *prometheus.Registry) (event.Observer, error) {
	if role == "promlease" {
		return promlease.New(r, promlease.Options{})
	}
	e, err := exporter.New(exporter.WithRegisterer(r))
	if err != nil {
		return nil, err
	}
	return otellease.New(otellease.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(e))})
}

// process is a worker process.
type process struct {
	*exec.Cmd

	address string
}

// start starts a worker process, which is killed with the test.
func start(t *testing.T, role, ledger string, env ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	c := exec.Command(exe)
	c.Env = append(append(os.Environ(), roleVariable+"="+role, ledgerVariable+"="+ledger), env...)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if _, err := c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	p := &process{Cmd: c}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the worker has not begun: %v", err)
	}
	p.address = strings.TrimSpace(line)
	return p
}

// kill kills the process with SIGKILL.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}
