package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckVersion: the server knows all that is asked of it.
	CheckVersion = "version"
	// CheckPrimary: the server is a primary, and the only one.
	CheckPrimary = "primary"
	// CheckEviction: the server deletes nothing when memory gets scarce.
	CheckEviction = "eviction"
	// CheckDurability: what is acknowledged outlives crashes.
	CheckDurability = "durability"
)

// server is what a server says of itself.
type server struct {
	// product is Redis or Valkey, version that of Redis whose commands it has.
	product, version, shown string
	role                    string
	primary                 string // of a replica
	replicas                int    // that are connected
	cluster                 bool
	maxmemory               int64
	policy                  string
	appendOnly              bool
	// diskError: the last snapshot or write of the append-only file failed.
	diskError bool
	loading   bool
	// config has the parameters that CONFIG GET tells; nil if it may not be asked.
	config map[string]string
}

// parseInfo reads a reply to INFO, or to a section of it.
func parseInfo(text string) server {
	s := server{product: "Redis"}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			s.version = value
		case "valkey_version":
			s.product, s.shown = "Valkey", value
		case "role":
			s.role = value
		case "master_host":
			s.primary = value
		case "connected_slaves":
			s.replicas, _ = strconv.Atoi(value)
		case "cluster_enabled":
			s.cluster = value == "1"
		case "maxmemory":
			s.maxmemory, _ = strconv.ParseInt(value, 10, 64)
		case "maxmemory_policy":
			s.policy = value
		case "aof_enabled":
			s.appendOnly = value == "1"
		case "rdb_last_bgsave_status", "aof_last_write_status":
			s.diskError = s.diskError || value != "ok"
		case "loading":
			s.loading = value == "1"
		}
	}
	if s.shown == "" {
		s.shown = s.version
	}
	return s
}

// configs are the parameters that are asked for.
var configs = []string{"appendfsync", "no-appendfsync-on-rewrite", "min-replicas-to-write", "min-replicas-max-lag"}

// anyServer is the context key of what is asked of a server even if it is unfit.
type anyServer struct{}

// look asks the server about itself, fit or not.
func (l *Ledger) look(ctx context.Context) (s server, err error) {
	err = l.on(context.WithValue(ctx, anyServer{}, true), func(k *link) (usable bool, err error) {
		s, usable, err = l.lookOn(ctx, k)
		return usable, err
	})
	return s, err
}

// lookOn asks the server of a link about itself. What CONFIG GET tells is left out if that isn't allowed.
func (l *Ledger) lookOn(ctx context.Context, k *link) (s server, usable bool, err error) {
	asked := []command{{"INFO"}, {"EXISTS", l.names.types()}}
	for _, name := range configs {
		asked = append(asked, command{"CONFIG", "GET", name})
	}
	replies, err := k.ask(ctx, asked...)
	if err != nil {
		return s, false, err
	}
	text, err := replies[0].Text()
	if err != nil {
		return s, true, err
	}
	// A node of a cluster that hasn't our keys says so.
	if _, ok := moved(replies[1].Err(), k.addr); ok {
		return s, true, replies[1].Err()
	}
	s = parseInfo(text)
	for _, r := range replies[2:] {
		pair, err := r.StringSlice()
		if err == nil && len(pair) == 2 {
			if s.config == nil {
				s.config = map[string]string{}
			}
			s.config[pair[0]] = pair[1]
		}
	}
	l.known.Store(&s)
	if s.replicas > 0 || s.cluster {
		l.copied.Store(true)
	}
	k.fit = l.fit(s) == nil
	return s, true, nil
}

// fit is nil if a server can keep a ledger.
func (l *Ledger) fit(s server) error {
	if s.loading {
		return errors.New("the server is loading its data")
	}
	if flaws := l.flaws(s); len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	return nil
}

// check is nil if the server can keep a ledger.
func (l *Ledger) check(ctx context.Context) error {
	s, err := l.look(ctx)
	if err != nil {
		return fmt.Errorf("ask the server about itself: %w", err)
	}
	return l.fit(s)
}

// checked is nil if the server of a link was found fit over this very connection. A server that was restarted, maybe
// with another configuration and without its data, has new connections only, so that it is asked before it is used.
func (l *Ledger) checked(ctx context.Context, k *link) (usable bool, err error) {
	if k.fit || ctx.Value(anyServer{}) != nil {
		return true, nil
	}
	s, usable, err := l.lookOn(ctx, k)
	if err == nil {
		err = l.fit(s)
		usable = err == nil
	}
	if err != nil {
		err = storekit.NotStored(err)
	}
	return usable, err
}

// flaws are the reasons why a server is unfit.
func (l *Ledger) flaws(s server) (flaws []storekit.Flaw) {
	flaw := func(check, remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: check, Remedy: remedy, What: "the server " + fmt.Sprintf(format, args...)})
	}
	if !fresh(s.version) {
		flaw(CheckVersion, "use Redis 6.2 or later, or Valkey", "is version %.20q", s.version)
	}
	switch {
	case s.role == "slave" || s.role == "replica":
		flaw(CheckPrimary, "use the address of the primary", "is a replica of %.100s", s.primary)
	case s.role != "master":
		flaw(CheckPrimary, "use a server that has one primary", "has the role %.20q: several servers may accept one key", s.role)
	}
	if s.maxmemory > 0 && s.policy != "noeviction" {
		flaw(CheckEviction, "CONFIG SET maxmemory-policy noeviction", "deletes keys when it has used %d bytes of memory (maxmemory-policy %.30s), and would delete ledgers", s.maxmemory, s.policy)
	}
	if !s.appendOnly && !l.address.unpersistent {
		flaw(CheckDurability, "CONFIG SET appendonly yes, or accept that by unsafeNoPersistence=true",
			"has no append-only file: a restart of its process loses acknowledged records, and then two workers may hold one slot")
	}
	return flaws
}

// fresh reports whether a version is 6.2 or later.
func fresh(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, minorErr := strconv.Atoi(minor)
	return err == nil && minorErr == nil && (a > 6 || a == 6 && b >= 2)
}

// expires is the flaw of a key that the server will delete.
func expires(key string) storekit.Flaw {
	return storekit.Flaw{Check: store.CheckExpiry, What: "the key " + key + " has a time to live, at whose end the server deletes the ledger", Remedy: "PERSIST " + key}
}
