package nats

import (
	"context"
	"time"

	"github.com/benbjohnson/clock"
	natsio "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// DefaultPort is that of servers without one.
	DefaultPort = "4222"
	// DefaultServerSkew is how far the servers' clocks are assumed to be apart, if the bucket has several replicas.
	DefaultServerSkew = 100 * time.Millisecond
)

// Options of Open. URI is required.
type Options struct {
	// URI names servers of one cluster, and the bucket:
	//
	//	nats://worker:PASSWORD@10.0.0.1:4222,10.0.0.2/BUCKET?tls=true
	//
	// The port is 4222 if it is missing. Parameters:
	//
	//	creds=PATH        a file with credentials, in place of a user and a password
	//	tls=true          encrypt, and verify the servers' certificates: by the system's authorities, those of the file that
	//	                  SSL_CERT_FILE names on Linux, or those that Connect names (nats.RootCAs)
	//	serverSkew=500ms  how far the clocks of the servers that keep the bucket may differ at most, which is an assumption, and part
	//	                  of each stamp of a bucket with several replicas. Default: DefaultServerSkew
	//	syncAlways=true   says that all servers run with sync_interval: always, which no client can see. It changes what the
	//	                  ledger says of its durability, and nothing else
	//
	// store.Open takes a password from the environment variable NATS_PASSWORD, if the URI has a user without one.
	URI string
	// Connect are further options of the connection, such as certificates, or a login of another kind: nats.UserInfoHandler
	// gives the password that is current, for each connection anew. A connection of the application's isn't taken: after it was
	// cut it might send what it has buffered.
	Connect []natsio.Option

	// Clock measures what the store waits for. It doesn't measure leases. Default: the real clock.
	Clock clock.Clock
}

// Ledger keeps ledgers in a bucket. It is a store.Ledger, store.Roster, store.Pager, store.Watcher and store.Described, and safe
// for concurrent use.
type Ledger struct {
	*storekit.ObjectLedger

	b *bucket
}

var (
	_ store.Described = (*Ledger)(nil)
	_ store.Watcher   = (*Ledger)(nil)
)

// String names the servers and the bucket, without secrets.
func (l *Ledger) String() string { return "nats://" + l.b.at.Place(form) + "/" + l.b.at.Database }

// Describe says what the ledger knows of itself.
func (l *Ledger) Describe() store.Description {
	return store.Description{
		Durability: l.Durability, Warning: l.b.checks.Warning, InitScript: l.InitScript,
		CheckRights: func(ctx context.Context) error {
			_, err := storekit.Run(ctx, l.b.runner, "rights", "", func(ctx context.Context) (none struct{}, err error) {
				return none, l.b.checks.Ask(ctx, store.CheckAppend)
			})
			return err
		},
		Examine: l.b.checks.Examine,
	}
}

// Durability depends on the bucket, as operations have seen it, and on what Options say of the servers.
func (l *Ledger) Durability() store.Durability {
	const late = "The last 2 minutes or so may be lost: servers acknowledge before they sync, by default once in 2 minutes."
	d := store.Durability{Crash: "All survive: the server has handed them to the system.", Power: late, Failover: "There is no copy."}
	in := l.b.newest.Load()
	switch {
	case l.b.at.syncAlways:
		d.Power = "All survive: the server has synced them, as the options say (syncAlways)."
	case in != nil && in.Config.Replicas > 1:
		d.Power = "All survive if one machine loses power at a time and catches up before the next; of several at once, up to 2 minutes may be lost, since servers acknowledge before they sync."
	}
	if in != nil && in.Config.Replicas > 1 {
		d.Crash = "All survive: a majority of the servers has them."
		d.Failover = "All survive: only a server that has all of them is elected, unless it has lost power before it synced."
	}
	if in != nil && in.Config.Storage == jetstream.MemoryStorage {
		d.Crash, d.Power = "None survive on that server: the bucket is in memory.", "None survive on that server: the bucket is in memory."
	}
	return d
}

// InitScript returns what makes the bucket, and the rights of a worker.
func (l *Ledger) InitScript() string {
	bucket := l.b.at.Database
	return `# for a shell with the tool nats. Use --replicas=1 on a single server.
nats kv add ` + bucket + ` --replicas=3 --history=1 --storage=file
# With users that have permissions, a worker needs these, in the servers' configuration:
#   publish: ["$JS.API.INFO", "$JS.API.STREAM.INFO.KV_` + bucket + `", "$JS.API.STREAM.MSG.GET.KV_` + bucket + `", "$JS.API.DIRECT.GET.KV_` + bucket + `.>", "$JS.API.STREAM.PURGE.KV_` + bucket + `",
#     "$JS.API.CONSUMER.*.KV_` + bucket + `.>", "$JS.FC.KV_` + bucket + `.>", "$KV.` + bucket + `.>"]
#   subscribe: ["_INBOX.>"]
# Those who only look need no "$KV…" and no "…PURGE…".
`
}
