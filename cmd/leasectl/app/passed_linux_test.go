package app

import (
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

func TestSignalsForTheCommandArePassedOn(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	p := startRun(t, storeArg, "a", []string{"--continuous"}, "sh", "-c", `trap "echo heard 1" USR1; trap "echo heard 2" USR2; echo listens; while :; do sleep 0.01; done`)
	p.await("worker \"a\"") // No command may run yet: then they are dropped.
	p.signal(syscall.SIGUSR1)
	p.signal(syscall.SIGUSR2)
	p.await("listens")
	p.signal(syscall.SIGUSR1)
	p.await("heard 1")
	p.signal(syscall.SIGUSR2)
	p.await("heard 2")
	p.signal(syscall.SIGTERM)
	p.exits(exit.OK)
}
