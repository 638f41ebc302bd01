package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// server is what a server says of itself.
type server struct {
	// addr is where it was reached.
	addr string
	// product is Redis or Valkey, version that of Redis whose commands it has.
	product, version, shown string
	role                    string
	primary                 string // of a replica
	replicas                int    // that are connected
	// followers are the replicas that are connected, by the addresses that the server knows, and process is its own id.
	followers []string
	process   string
	// history names the line of changes (replid), former the one that it took over from another server, if it did, and micros is the
	// server's clock.
	history, former, micros string
	// offset is how far that has come.
	offset     int64
	cluster    bool
	maxmemory  int64
	policy     string
	appendOnly bool
	// diskError: the last snapshot or write of the append-only file failed.
	diskError bool
	// rewriting: the append-only file is being written anew, or is to be. base is the size that it had after it was last, and
	// size that by now.
	rewriting  bool
	base, size int64
	// whole: the append-only file was seen complete before.
	whole bool
	// configFile is where CONFIG REWRITE keeps settings; empty if there is no such file.
	configFile string
	loading    bool
	// config has the parameters that CONFIG GET tells; nil if it may not be asked.
	config map[string]string
}

// parseInfo reads a reply to INFO, or to a section of it.
func parseInfo(text string) server {
	about := map[string]string{}
	var s server
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		about[name] = value
		host, rest, ok := strings.Cut(strings.TrimPrefix(value, "ip="), ",port=")
		if !ok || !strings.HasPrefix(name, "slave") {
			continue
		}
		// Who makes a backup (redis-cli --rdb) has no port, and never takes over.
		if port, _, _ := strings.Cut(rest, ","); port != "0" {
			s.followers = append(s.followers, net.JoinHostPort(host, port))
		} else {
			s.replicas--
		}
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(about[name], 10, 64)
		return n
	}
	failed := func(name string) bool { return about[name] != "" && about[name] != "ok" }
	s.product, s.version, s.shown = "Redis", about["redis_version"], about["redis_version"]
	if v := about["valkey_version"]; v != "" {
		s.product, s.shown = "Valkey", v
	}
	s.process, s.configFile, s.micros = about["run_id"], about["config_file"], about["server_time_usec"]
	s.history, s.former = about["master_replid"], strings.Trim(about["master_replid2"], "0")
	s.offset = number("master_repl_offset")
	s.role, s.primary, s.cluster = about["role"], about["master_host"], about["cluster_enabled"] == "1"
	s.replicas += int(number("connected_slaves"))
	s.maxmemory, s.policy = number("maxmemory"), about["maxmemory_policy"]
	s.appendOnly, s.loading = about["aof_enabled"] == "1", about["loading"] == "1"
	s.rewriting = about["aof_rewrite_in_progress"] == "1" || about["aof_rewrite_scheduled"] == "1"
	s.base, s.size = number("aof_base_size"), number("aof_current_size")
	s.diskError = failed("rdb_last_bgsave_status") || failed("aof_last_write_status")
	return s
}

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
	replies, err := k.ask(ctx, command{"INFO"}, command{"EXISTS", l.names.types()}, command{"CONFIG", "GET", "*appendfsync*"})
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
	s.addr = k.addr
	if s.isReplica() && isCode(replies[1].Err(), "CLUSTERDOWN") {
		return server{}, true, replies[1].Err() // It can't say who has them now.
	}
	if pairs, err := replies[2].StringSlice(); err == nil {
		s.config = map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			s.config[pairs[i]] = pairs[i+1]
		}
	}
	s.whole = l.sawWhole(s)
	l.known.Store(&s)
	l.sees(s.replicas)
	k.fit, k.sections = l.fit(s) == nil, since(s.version, 7, 0)
	if k.fit {
		l.primarySeen.Store(true)
	}
	return s, true, nil
}

// fit is nil if a server can keep a ledger. A replica was named by mistake, unless a primary was seen before or sentinels
// have named it: then it is a failover, which passes.
func (l *Ledger) fit(s server) error {
	if s.loading {
		return errors.New("the server is loading its data")
	}
	flaws := l.flaws(s)
	at := slices.IndexFunc(flaws, func(f storekit.Flaw) bool { return f.Level == store.LevelFail })
	switch {
	case at < 0:
		return nil
	case s.isReplica() && (l.primarySeen.Load() || l.address.service != ""), flaws[at].What == incomplete:
		return errors.New(flaws[at].What)
	}
	return flaws[at].Refuse()
}

// incomplete says why a server isn't used yet.
const incomplete = "the server writes its append-only file for the first time, so that what it acknowledges is lost with its process until that is over"

// incomplete reports whether the append-only file has been turned on, and lacks what came before. Until it is complete, the
// server doesn't load it at a start.
func (s server) incomplete() bool {
	return s.appendOnly && s.rewriting && (s.base == 0 && !s.whole || s.size < s.base)
}

// sawWhole reports whether the append-only file of a server was complete when this handle saw it last. A server that was empty when
// it was started says nothing of its file that would show that, until the first rewrite is over.
func (l *Ledger) sawWhole(s server) bool {
	now := s.process + s.history // One that was a replica since has another history.
	switch {
	case !s.appendOnly:
		l.whole.Store(nil)
	case !s.rewriting:
		l.whole.Store(&now)
	}
	seen := l.whole.Load()
	return s.appendOnly && s.process != "" && seen != nil && *seen == now
}

func (s server) isReplica() bool { return s.role == "slave" || s.role == "replica" }

// check is nil if the server can keep a ledger.
func (l *Ledger) check(ctx context.Context) error {
	s, err := l.look(ctx)
	if err != nil {
		return fmt.Errorf("ask the server about itself: %w", err)
	}
	if err := l.fit(s); err != nil || l.readOnly { // For people who look, neither clocks nor another primary matter much.
		return err
	}
	flaws, settled := l.split(l.surveyAll(ctx, s))
	if len(flaws) == 0 {
		return nil
	}
	if settled {
		return flaws[0].Refuse()
	}
	l.clock.AfterFunc(agreeTime, l.fitness.Suspect)
	return storekit.NotStored(errors.New(flaws[0].What + ": a failover, if the sentinels agree within " + agreeTime.String()))
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

// since reports whether a version is a given one or later.
func since(version string, major, minor int) bool {
	var a, b int
	n, _ := fmt.Sscanf(version, "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
}
