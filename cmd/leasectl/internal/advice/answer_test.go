package advice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
)

func TestWhatToTryDependsOnTheAnswerAndOnTheStore(t *testing.T) {
	const unreached = "check that the server runs and "
	const wrongAccount = "check the name of the account, "
	const noKey = "set COSMOS_KEY or COSMOS_CONNECTION_STRING, or sign in (az login); "
	key, connection := cosmos.KeyVariable+"=a2V5", cosmos.ConnectionVariable+"=AccountEndpoint=https://h.invalid:443/;AccountKey=a2V5;"
	status := func(code int) error { return &azcore.ResponseError{StatusCode: code} }
	labelled := func(labels ...string) error {
		return mongodriver.CommandError{Code: 10107, Message: "not primary", Labels: labels}
	}
	without := func(set string, servers ...description.Server) error {
		return topology.ServerSelectionError{Desc: description.Topology{Kind: description.TopologyKindReplicaSetNoPrimary, SetName: set, Servers: servers}, Wrapped: context.DeadlineExceeded}
	}
	gone := func(addr address.Address) description.Server {
		return description.Server{Addr: addr, LastError: errors.New("refused")}
	}
	for _, c := range []struct {
		name, uri, env string
		err            error
		code           int
		want           string // how the hint begins; none if empty
	}{
		{"nobody answered", "mongodb://h/d", "", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, exit.Unreachable, unreached},
		{"a server answered what the store can't use", "mongodb://h/d", "", errors.New("h:27017 is no member of a replica set"), exit.Unreachable, ""},
		{"the server is too old", "mongodb://h/d", "", errors.New("server at h:27017 reports wire version 5"), exit.Unreachable, ""},
		{"there is no SRV record", "mongodb+srv://h.invalid/d", "", &net.DNSError{Err: "no such host", IsNotFound: true}, exit.Unreachable, "check the host in the URI, for which the DNS must have an SRV record"},
		{"the members aren't a set yet", "mongodb://h/d", "", without("rs0", description.Server{Addr: "h:27017", Kind: description.ServerKindRSGhost}), exit.Unreachable, "again in a moment if the servers have just started; else make a replica set of them: rs.initiate()"},
		{"the members have other names", "mongodb://db1/d", "", without("rs0", gone("db-internal:27017")), exit.Unreachable, "let this machine reach the members by the names"},
		{"the members have the URI's names", "mongodb://DB1,db2:27018/d", "", without("rs0", gone("db1:27017"), gone("db2:27018")), exit.Unreachable, unreached},
		{"the servers of an SRV record", "mongodb+srv://h.invalid/d", "", without("rs0", gone("db1.h.invalid:27017")), exit.Unreachable, unreached},
		{"a socket", "mongodb://%2Ftmp%2Fmongodb-27017.sock/d", "", without("rs0", gone("/tmp/mongodb-27017.sock")), exit.Unreachable, unreached},
		{"the connection broke", "mongodb://h/d", "", labelled("NetworkError"), exit.Unreachable, unreached},
		{"the time was up", "mongodb://h/d", "", mongodriver.CommandError{Wrapped: context.DeadlineExceeded}, exit.Unreachable, unreached},
		{"no member is the primary", "mongodb://h/d", "", without("rs0", description.Server{Kind: description.ServerKindRSSecondary}, description.Server{}), exit.Unreachable, "again in a moment: an election"},
		{"no member answers", "mongodb://h/d", "", without("rs0", gone("h:27017")), exit.Unreachable, unreached},
		{"the replica set has another name", "mongodb://h/d", "", without("rs1"), exit.Unreachable, "correct replicaSet"},
		{"the server said no", "mongodb://h/d", "", labelled(), exit.Unreachable, ""},
		{"the server throttles", "mongodb+srv://h.invalid/d", "", &store.ThrottledError{Err: labelled()}, exit.Unreachable, "again in a moment; if it lasts, the server has too much"},
		{"nobody answered", "cosmos://acct", "", errors.New("no such host"), exit.Unreachable, wrongAccount},
		{"nobody answered with a key", "cosmos://acct", key, errors.New("no such host"), exit.Unreachable, wrongAccount},
		{"nobody answered at an endpoint", "cosmos:///", connection, errors.New("no such host"), exit.Unreachable, wrongAccount},
		{"the service is down", "cosmos://acct", "", status(http.StatusServiceUnavailable), exit.Unreachable, "again in a moment: the server answers"},
		{"the service gave up", "cosmos://acct", "", status(http.StatusRequestTimeout), exit.Unreachable, "again in a moment: the server answers"},
		{"the service said no", "cosmos://acct", "", status(http.StatusBadRequest), exit.Unreachable, ""},
		{"the service throttles", "cosmos://acct", "", &store.ThrottledError{Err: status(http.StatusTooManyRequests)}, exit.Unreachable, "again in a moment; if it lasts, the container needs more throughput"},
		{"an identity is denied", "cosmos://acct", "", store.ErrDenied, exit.Denied, noKey},
		{"a key is denied", "cosmos://acct", key, store.ErrDenied, exit.Denied, "check the key in COSMOS_KEY, "},
		{"a connection is denied", "cosmos:///", connection, store.ErrDenied, exit.Denied, "check the key in COSMOS_CONNECTION_STRING, "},
		{"a container is missing", "cosmos://acct", key, store.ErrMissing, exit.Missing, "leasectl init --store cosmos://acct"},
		{"a container is missing at an endpoint", "cosmos:///", connection, store.ErrMissing, exit.Missing, "leasectl init --store cosmos:///"},
		{"the database is missing", "postgres://h/d", "", fmt.Errorf("%w: there is no database \"d\" on the server: create it", store.ErrMissing), exit.Missing, "create the database, or correct its name in the URI"},
		{"a table is missing", "postgres://h/d", "", store.ErrMissing, exit.Missing, "leasectl init --store postgres://h/d"},
		{"a file is locked", "sqlite:x.db", "", errors.New("database is locked"), exit.Unreachable, ""},
	} {
		set, value, _ := strings.Cut(c.env, "=")
		target, err := storeuri.Parse(c.uri, func(name string) string { return map[string]string{set: value}[name] })
		if err != nil {
			t.Fatal(err)
		}
		f, ok := errors.AsType[*exit.Error](ForStore(target, fmt.Errorf("now: %w", c.err)))
		if !ok || f.Code != c.code || !strings.HasPrefix(f.Try, c.want) || (c.want == "") != (f.Try == "") {
			t.Errorf("%s, %s: %+v, want code %d, and to try %q", c.uri, c.name, f, c.code, c.want)
		}
	}
}

func TestHintsCanBePastedIntoAShell(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:leases.db":                     " --store sqlite:leases.db",
		"cosmos://a/d/c?throughput=400&x=it's": ` --store 'cosmos://a/d/c?throughput=400&x=it'\''s'`,
		"mongodb://h/d?collection=leases":      " --store 'mongodb://h/d?collection=leases'",
		"sqlite:password=***":                  " --store 'sqlite:password=***'",
		"sqlite:$(touch x) `touch x`; --yes":   " --store 'sqlite:$(touch x) `touch x`; --yes'",
		"sqlite:a\nb\x1b[2J":                   ` --store "$(printf 'sqlite:a\012b\033\1332J')"`,
		"sqlite:a\n":                           "",
	} {
		for _, scheme := range []string{storeuri.SQLite, storeuri.MongoDB} {
			if scheme == storeuri.MongoDB && strings.Contains(text, "***") {
				continue
			}
			e, ok := errors.AsType[*exit.Error](ForStore(storeuri.Target{Scheme: scheme, Shown: text}, store.ErrMissing))
			if !ok || e.Try != "leasectl init"+want {
				t.Errorf("the hint for %q is %+v, want to try leasectl init%s", text, e, want)
			}
		}
	}
}

// Advice to repeat what has just failed is useless.
func TestACopyIsOfferedOnlyIfThereIsASecondary(t *testing.T) {
	for kind, want := range map[description.ServerKind]bool{description.ServerKindRSSecondary: true, description.ServerKindRSArbiter: false, description.ServerKindRSGhost: false} {
		err := topology.ServerSelectionError{Desc: description.Topology{Servers: []description.Server{{Kind: kind}, {LastError: errors.New("refused")}}}}
		e, ok := errors.AsType[*exit.Error](ForStore(storeuri.Target{Scheme: storeuri.MongoDB, Shown: "mongodb://h/d"}, err))
		if !ok || strings.Contains(e.Try, "--stale") != want || !strings.HasPrefix(e.Try, "again in a moment") {
			t.Errorf("with %v: %+v, want --stale in what to try: %v", kind, e, want)
		}
	}
}

// What is shown of such a store opens nothing.
func TestAHintForAStoreWithASecretNamesTheVariable(t *testing.T) {
	const command = "leasectl override --worker-type t --seq 2"
	for _, inEnv := range []bool{false, true} {
		target, err := storeuri.Parse("mongodb://user:secret@h/d", func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		want := "with the store in LEASECTL_STORE: " + command
		if target.InEnv = inEnv; inEnv {
			want = command
		}
		if got := Command(target, command); got != want {
			t.Errorf("Command() = %q, want %q", got, want)
		}
	}
}
