package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"

	natsio "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckSync: the servers sync records before they acknowledge them.
	CheckSync = "sync"
	// CheckReplicas: several servers keep the bucket, on disk, and all of them follow.
	CheckReplicas = "replicas"
	// CheckLimits: there is space left in the account and in the bucket.
	CheckLimits = "limits"
)

// probe is a name at which nothing is ever stored.
const probe = "/-/-"

// rows is the table of checks. That of the connection asks for the bucket: all that is known of it comes with the reply.
func (b *bucket) rows() []storekit.Check {
	about := func(name string, level store.Level, judge func(in *jetstream.StreamInfo) (string, []storekit.Flaw)) storekit.Check {
		return storekit.Check{Name: name, Level: level, Standing: true, Ask: func(context.Context) (string, error) {
			sound, flaws := judge(b.newest.Load())
			return storekit.Found(sound, flaws...)
		}}
	}
	right := func(name string, level store.Level, subject string, try func(ctx context.Context) error) storekit.Check {
		return storekit.Check{Name: name, Level: level, Grant: "allow the user to publish to " + subject, Ask: func(ctx context.Context) (string, error) {
			return "granted, by a request that changes nothing", try(ctx)
		}}
	}
	// A message for another stream is refused, and so not stored.
	put := func(folder string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := b.put(ctx, folder+probe, nil, true, jetstream.WithExpectStream("none"))
			if code(err) == codeOtherStream {
				return nil
			}
			return err
		}
	}
	return []storekit.Check{
		{Name: store.CheckConnection, Level: store.LevelFail, Ask: b.answered, Needed: "the bucket can't be asked", Standing: true},
		{Name: store.CheckTLS, Level: store.LevelWarn, Ask: b.secured, Alone: true},
		about(store.CheckExpiry, store.LevelFail, keeps),
		about(CheckReplicas, store.LevelWarn, replicated),
		{Name: CheckSync, Level: store.LevelWarn, Ask: b.synced, Alone: true},
		{Name: CheckLimits, Level: store.LevelWarn, Ask: b.space},
		storekit.Assumed(b.at.skew, "no client can ask a server that doesn't lead; one server has one clock"),
		right(store.CheckRead, store.LevelFail, "$JS.API.STREAM.MSG.GET."+b.stream(), func(ctx context.Context) error {
			if _, err := b.Read(ctx, "ledger"+probe); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return nil
		}),
		right(store.CheckAppend, store.LevelFail, b.subject("")+">", put("ledger")),
		right(store.CheckTrim, store.LevelWarn, "$JS.API.STREAM.PURGE."+b.stream(), func(ctx context.Context) error {
			_, err := b.Delete(ctx, "ledger"+probe)
			return err
		}),
		right(store.CheckRoster, store.LevelWarn, b.subject("")+">", put("roster")),
	}
}

func (b *bucket) answered(ctx context.Context) (string, error) {
	in, err := b.look(ctx)
	if err == nil && in.TimeStamp.IsZero() {
		return storekit.Found("", storekit.Flaw{Check: store.CheckConnection, What: "the server says no time: it is older than 2.10", Remedy: "use a newer one"})
	}
	return "the bucket's leader answered", err
}

// secured says how the connection is secured, or will be: the application's options have a say, too, and servers may demand TLS.
func (b *bucket) secured(context.Context) (string, error) {
	o := natsio.GetDefaultOptions()
	if c := b.connector.conn.Load(); c != nil {
		o = c.Opts
		_, plain := c.TLSConnectionState()
		o.Secure = o.Secure || plain == nil
	} else { // As Connect gives them to options, whose errors it returns.
		o.Url = b.at.servers()
		o.Servers = strings.Split(o.Url, ",")
		for _, set := range b.options {
			if set != nil {
				_ = set(&o)
			}
		}
	}
	own := o.TLSConfig
	switch {
	case o.Secure && own != nil && own.InsecureSkipVerify && own.VerifyPeerCertificate == nil && own.VerifyConnection == nil:
		return storekit.Found("", storekit.Flaw{Check: store.CheckTLS, What: "encrypted, and the servers' certificates aren't verified", Remedy: "don't set InsecureSkipVerify"})
	case o.Secure:
		return "encrypted, and the servers' certificates are verified", nil
	case b.at.Loopback():
		return "not encrypted, to this machine alone", nil
	}
	return storekit.Found("", storekit.Flaw{Check: store.CheckTLS, What: "not encrypted, unless the servers demand it", Remedy: "use tls=true"})
}

// keeps are what would delete records, or take them in another way than they were sent.
func keeps(in *jetstream.StreamInfo) (sound string, flaws []storekit.Flaw) {
	c := in.Config
	for what, is := range map[string]bool{
		fmt.Sprintf("its keys end after %v (TTL)", c.MaxAge):  c.MaxAge > 0,
		"it drops old keys at its limit (discard old)":        c.Discard == jetstream.DiscardOld && (c.MaxMsgs > 0 || c.MaxBytes > 0),
		"it drops what was read (retention isn't limits)":     c.Retention != jetstream.LimitsPolicy,
		"it is a mirror of another, or has sources":           c.Mirror != nil || len(c.Sources) > 0,
		"it stores messages under other subjects (transform)": c.SubjectTransform != nil,
		"it is sealed": c.Sealed,
		"another stream's subjects are in it, or not all of its keys": len(c.Subjects) != 1 || c.Subjects[0] != "$KV."+strings.TrimPrefix(c.Name, "KV_")+".>",
	} {
		if is {
			flaws = append(flaws, storekit.Flaw{Check: store.CheckExpiry, What: "the bucket can't keep a ledger: " + what, Remedy: "use another bucket, as leasectl init makes it"})
		}
	}
	return "nothing deletes keys but workers", flaws
}

func replicated(in *jetstream.StreamInfo) (sound string, flaws []storekit.Flaw) {
	if in.Config.Storage == jetstream.MemoryStorage {
		flaws = append(flaws, storekit.Flaw{Check: CheckReplicas, What: "the bucket is in memory: a server that is restarted has lost it", Remedy: "use another bucket, with file storage"})
	}
	n := in.Config.Replicas
	if n < 3 {
		flaws = append(flaws, storekit.Flaw{
			Check: CheckReplicas, Remedy: "in a cluster: nats stream update " + in.Config.Name + " --replicas=3",
			What: fmt.Sprintf("of the bucket there is %d copy: its loss is that of the ledger", n),
		})
	}
	if in.Cluster != nil {
		for _, peer := range in.Cluster.Replicas {
			if !peer.Current || peer.Offline {
				flaws = append(flaws, storekit.Flaw{Check: CheckReplicas, What: "the copy on " + peer.Name + " is behind or down", Remedy: "start that server, or let it catch up"})
			}
		}
	}
	return fmt.Sprintf("%d servers keep the bucket on disk, and all follow", n), flaws
}

// synced can only be what people say: no client can see how servers sync.
func (b *bucket) synced(context.Context) (string, error) {
	if b.at.syncAlways {
		return "servers sync before they acknowledge, as syncAlways says", nil
	}
	return storekit.Found("", storekit.Flaw{
		Check:  CheckSync,
		What:   "servers acknowledge before they sync, by default once in 2 minutes: a loss of power may take acknowledged records, so that two workers get one slot",
		Remedy: "set sync_interval: always in the jetstream block of all servers, then syncAlways=true in the URI",
	})
}

func (b *bucket) space(ctx context.Context) (string, error) {
	var flaws []storekit.Flaw
	full := func(what string, used uint64, limit int64) {
		if limit > 0 && used > uint64(limit)/5*4 {
			flaws = append(flaws, storekit.Flaw{Check: CheckLimits, What: fmt.Sprintf("%s has %d bytes of %d", what, used, limit), Remedy: "raise the limit, or appends will fail"})
		}
	}
	in := b.newest.Load()
	full("the bucket", in.State.Bytes, in.Config.MaxBytes)
	account, err := call(ctx, b, "$JS.API.INFO", true, func(ctx context.Context, js jetstream.JetStream) (*jetstream.AccountInfo, error) {
		return js.AccountInfo(ctx)
	})
	if err != nil {
		return "", storekit.Skip("the account can't be asked (publish to $JS.API.INFO)")
	}
	full("the account", account.Store, account.Limits.MaxStore)
	return storekit.Found("there is space in the bucket and the account", flaws...)
}
