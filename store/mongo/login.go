package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/auth"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"

	"github.com/slotlease/slotlease/internal/scrub"
)

// login is what the URI says about who we are, and which replica set is meant. It is empty
// with a client of the caller's own.
type login struct {
	known      bool
	user       string
	source     string // the database that knows the user
	replicaSet string
	hosts      []string // of the URI, or of its SRV record
	// direct makes options to connect to one of the servers.
	direct func(addr string) *options.ClientOptions
	// reach connects to one of the servers.
	reach dialFunc

	mu sync.Mutex
	// sets are the names of replica sets by the servers that have told them; empty for a
	// server that is in none.
	sets map[string]string
	// primaries are the servers that have said last that they are one.
	primaries map[string]bool
	// set and members are the name and the servers of the replica set as of the newest time that the
	// driver knew a primary; empty before the first.
	set     string
	members []string
}

// loginOf reads the driver's options, which have all defaults, and what a TXT record of an
// SRV host adds to the URI.
func loginOf(o *options.ClientOptions) *login {
	l := &login{known: true, hosts: o.Hosts, direct: directly(o), reach: dialer(o), sets: map[string]string{}, primaries: map[string]bool{}}
	if o.Auth != nil {
		l.user, l.source = o.Auth.Username, o.Auth.AuthSource
		if l.user != "" && l.user == o.Auth.Password {
			l.user = scrub.Mask // Masked even if it is too short to be searched for.
		}
	}
	if o.ReplicaSet != nil {
		l.replicaSet = *o.ReplicaSet
	}
	return l
}

// lookUpTXT fails if the DNS doesn't answer for the TXT record of an SRV host. The driver goes
// on without it. But it may say authSource, and without that a login would be denied.
func lookUpTXT(ctx context.Context, a address) error {
	if !strings.HasPrefix(a.driver, schemeSRV) {
		return nil
	}
	_, err := net.DefaultResolver.LookupTXT(ctx, a.hosts)
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return nil
	}
	return err
}

// monitor notes the names of replica sets, and which servers say that they are primaries: the driver
// forgets a server that is in another set than the URI says, and ignores some primaries. It also notes
// which set the driver has found.
func (l *login) monitor() *event.ServerMonitor {
	return &event.ServerMonitor{ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sets[string(e.Reply.Addr)] = e.Reply.SetName
		l.primaries[string(e.Reply.Addr)] = e.Reply.Kind == "RSPrimary"
	}, ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailedEvent) {
		server, _, _ := strings.Cut(e.ConnectionID, "[-")
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.primaries, server)
	}, TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
		t := e.NewDescription
		if t.Kind != description.TopologyKindReplicaSetWithPrimary.String() {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.set, l.members = t.SetName, nil
		for _, s := range t.Servers {
			l.members = append(l.members, s.Addr.String())
		}
	}}
}

// who is the user as errors name it, in parentheses; nothing if that isn't known.
func (l *login) who() string {
	switch {
	case !l.known:
		return ""
	case l.source == "":
		return " (the URI names no user)"
	case l.user == "":
		return fmt.Sprintf(" (authenticated in %s)", l.source)
	}
	return fmt.Sprintf(" (user %s, authenticated in %s)", l.user, l.source)
}

// isLogin reports that an error is that of a login, which comes before the operation.
func isLogin(err error) bool {
	_, ok := errors.AsType[*auth.Error](err)
	return ok
}
