package mongo

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/slotlease/slotlease/internal/skew"
	"github.com/slotlease/slotlease/store/storekit"
)

// describe names the clocks that are off by more than is assumed. It is empty if none is.
func describe(strays []skew.Stray, assumed time.Duration) string {
	if len(strays) == 0 {
		return ""
	}
	var which []string
	for _, s := range strays {
		way := "ahead of"
		if s.Ahead < 0 {
			way = "behind"
		}
		which = append(which, fmt.Sprintf("the clock of %s is %v %s that of %s", s.Server, s.Ahead.Abs().Round(100*time.Millisecond), way, s.Of))
	}
	return fmt.Sprintf("%s, more than the %v that are assumed: synchronise the servers' clocks; until then all time is as uncertain as that, and short slots may be lost",
		strings.Join(which, ", "), assumed)
}

// warning describes the members' clocks that are off, and is empty if none is.
func (m *members) warning() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.strays
}

// note names the members that can't be asked, and is empty if all can.
func (m *members) note() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var which []string
	for _, host := range m.hosts {
		if err := m.why[host]; err != nil {
			which = append(which, fmt.Sprintf("%s (%v)", host, root(err)))
		}
	}
	if len(which) == 0 {
		return ""
	}
	return fmt.Sprintf("no clock can be asked for of %s: %v are assumed", strings.Join(which, ", "), m.clocks.Assumed)
}

// Warning says which members' or shards' clocks are off by more than Options.ServerSkew, as of the
// newest stamp; it is empty if none is. It asks nobody.
func (l *Ledger) Warning() string { return cmp.Or(l.members.warning(), l.shardWarning()) }

// Note names the members of the replica set that didn't answer when they were asked for their
// clock last, and says why: they are down, or have names that lead elsewhere here. It asks nobody.
func (l *Ledger) Note() string { return storekit.OneLine(l.secrets.Scrub(l.members.note())) }

// root is what happened to a connection, without the operation and the address.
func root(err error) error {
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	return err
}
