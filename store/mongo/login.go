package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/scrub"
)

// login is what the URI says about who we are, and which replica set is meant. It is empty
// with a client of the caller's own.
type login struct {
	known      bool
	srv        bool // the URI names an SRV record
	user       string
	source     string // the database that knows the user
	replicaSet string
	hosts      []string // of the URI, or of its SRV record
	// reach connects to one of the servers.
	reach dialFunc
	// encryption is that of the URI's files, and options those of the newest client.
	encryption *encryption
	options    atomic.Pointer[options.ClientOptions]

	mu sync.Mutex
	// set and members are the name and the servers of the replica set as of the newest time that the
	// driver knew a primary; those of the URI before the first.
	set     string
	members []string
	// lost is since when the driver has known no primary; zero while it knows one.
	lost time.Time
}

// loginOf reads the driver's options, which have all defaults, and what a TXT record of an
// SRV host adds to the URI.
func loginOf(o *options.ClientOptions, now time.Time) *login {
	l := &login{known: true, hosts: o.Hosts, members: o.Hosts, lost: now}
	l.options.Store(o)
	l.reach = func(ctx context.Context, host string) (net.Conn, error) { return dialer(l.options.Load())(ctx, host) }
	if o.Auth != nil {
		l.user, l.source = o.Auth.Username, o.Auth.AuthSource
		if l.user != "" && l.user == o.Auth.Password {
			l.user = scrub.Mask // Masked even if it is too short to be searched for.
		}
	}
	if o.ReplicaSet != nil {
		l.replicaSet, l.set = *o.ReplicaSet, *o.ReplicaSet
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

// monitor notes which replica set the driver has found, and when it lost the primary.
func (l *login) monitor(c clock.Clock) *event.ServerMonitor {
	return &event.ServerMonitor{TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
		t := e.NewDescription
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.Kind != "ReplicaSetWithPrimary" {
			if l.lost.IsZero() {
				l.lost = c.Now()
			}
			return
		}
		l.set, l.members, l.lost = t.SetName, nil, time.Time{}
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
