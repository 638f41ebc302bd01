package nats

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	natsio "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// mostTries is how often a key is asked for again, or tried again while another message for it is on its way, and tryAgain
	// the wait between.
	mostTries = 5
	tryAgain  = 10 * time.Millisecond
	// newBucket is the wait before a bucket that isn't there is asked for again.
	newBucket = 100 * time.Millisecond
	// barrier is the key of the message by which a read makes sure that it asks the present leader.
	barrier = "barrier"
)

// errDeposed is the error of reads that meet no server which has all that was acknowledged.
var errDeposed = errors.New("a server that isn't the bucket's leader any more answers in its place")

// bucket is a JetStream key-value bucket as the ledger sees it. It is a storekit.Objects.
type bucket struct {
	at        address
	clock     clock.Clock
	options   []natsio.Option
	runner    *storekit.Runner
	checks    *storekit.Checks
	connector connector
	// newest is what a server has said of the bucket last.
	newest atomic.Pointer[jetstream.StreamInfo]
}

var _ storekit.Folders = (*bucket)(nil)

// stream is the name of the bucket's stream.
func (b *bucket) stream() string { return "KV_" + b.at.Database }

// subject is that of a name. Names have slashes between their parts, and dots within them; in keys these are dots and equals signs,
// of which no name has any.
func (b *bucket) subject(name string) string {
	return "$KV." + b.at.Database + "." + strings.NewReplacer(".", "=", "/", ".").Replace(name)
}

// name is the name of a subject.
func (b *bucket) name(subject string) string {
	return strings.NewReplacer("=", ".", ".", "/").Replace(strings.TrimPrefix(subject, b.subject("")))
}

// Create stores a message if there is none with its subject. While another one is on its way, a server refuses both.
func (b *bucket) Create(ctx context.Context, name string, body []byte) (err error) {
	for range mostTries {
		_, err = b.put(ctx, name, body, false, jetstream.WithExpectLastSequencePerSubject(0))
		if code(err) != jetstream.JSErrCodeStreamWrongLastSequenceConstant || !storekit.Pause(ctx, b.clock, tryAgain) {
			break
		}
	}
	return err
}

// Replace stores a message in place of that with its subject.
func (b *bucket) Replace(ctx context.Context, name string, body []byte) error {
	_, err := b.put(ctx, name, body, false, jetstream.WithExpectStream(b.stream()))
	return err
}

// put stores a message, and returns its number in the stream.
func (b *bucket) put(ctx context.Context, name string, body []byte, again bool, condition jetstream.PublishOpt) (uint64, error) {
	ack, err := call(ctx, b, b.subject(name), again, func(ctx context.Context, js jetstream.JetStream) (*jetstream.PubAck, error) {
		return js.PublishMsg(ctx, &natsio.Msg{Subject: b.subject(name), Data: body}, condition) // It is sent again only if nobody was there to take it.
	})
	switch {
	case err != nil:
		return 0, err
	case ack.Stream != b.stream():
		return 0, errors.New("the acknowledgement isn't that of the bucket: another stream has its subjects")
	}
	return ack.Sequence, nil
}

// Read asks for the message of a key. A server that is behind, or was put out of office, may say that there is none.
func (b *bucket) Read(ctx context.Context, name string) ([]byte, error) {
	for range mostTries {
		message, err := ask(ctx, b, func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
			return s.GetLastMsgForSubject(ctx, b.subject(name))
		})
		if err == nil {
			return append([]byte{}, message.Data...), nil
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, err
		}
		if found, err := b.subjects(ctx, b.subject(name)); err != nil || len(found) == 0 {
			return nil, errors.Join(err, store.ErrNotFound)
		}
		storekit.Pause(ctx, b.clock, tryAgain)
	}
	return nil, errDeposed
}

// List asks for all names that begin as wanted, of which the server has an index, and sorts them.
func (b *bucket) List(ctx context.Context, prefix, after string, _ int, visit func(o storekit.Object) bool) error {
	names, err := b.subjects(ctx, b.subject(prefix)+">")
	for i := range names {
		names[i] = b.name(names[i])
	}
	slices.Sort(names)
	for _, name := range names {
		if name > after && !visit(storekit.Object{Name: name}) {
			break
		}
	}
	return err
}

// Folders lists the folders below a prefix.
func (b *bucket) Folders(ctx context.Context, prefix string) (folders []string, err error) {
	err = b.List(ctx, prefix, "", 0, func(o storekit.Object) bool {
		if folder, _, inside := strings.Cut(strings.TrimPrefix(o.Name, prefix), "/"); inside {
			folders = append(folders, folder)
		}
		return true
	})
	return slices.Compact(folders), err
}

// subjects are those that the bucket has, of all that a filter allows. With several replicas a message goes first, which a majority
// must take: then the answer counts only if it is that of a server which has that message, too.
func (b *bucket) subjects(ctx context.Context, filter string) (all []string, err error) {
	for range mostTries {
		var least uint64
		if in := b.newest.Load(); in == nil || in.Config.Replicas > 1 {
			least, err = b.put(ctx, barrier, nil, true, jetstream.WithExpectStream(b.stream()))
			if err != nil && !errors.Is(err, store.ErrDenied) {
				return nil, err // People who look may be told what was so a moment ago.
			}
		}
		in, err := b.look(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return nil, err
		}
		if in.State.LastSeq >= least {
			for subject := range in.State.Subjects {
				all = append(all, subject)
			}
			return all, nil
		}
		storekit.Pause(ctx, b.clock, tryAgain)
	}
	return nil, errDeposed
}

// ask asks the stream of the bucket, which it looks up once.
// In a cluster some servers learn late of a new bucket.
func ask[T any](ctx context.Context, b *bucket, do func(ctx context.Context, s jetstream.Stream) (T, error)) (v T, err error) {
	for range mostTries {
		v, err = call(ctx, b, "."+b.stream(), true, func(ctx context.Context, js jetstream.JetStream) (none T, err error) {
			c := &b.connector
			c.mu.Lock()
			s := c.stream
			c.mu.Unlock()
			if s == nil {
				if s, err = js.Stream(ctx, b.stream()); err != nil {
					return none, err
				}
				c.mu.Lock()
				c.stream = s
				c.mu.Unlock()
			}
			return do(ctx, s)
		})
		if code(err) != jetstream.JSErrCodeStreamNotFound || !storekit.Pause(ctx, b.clock, newBucket) {
			break
		}
	}
	return v, err
}

// look asks the leader for the state of the bucket. The reply has the leader's time.
func (b *bucket) look(ctx context.Context, filter ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	in, err := ask(ctx, b, func(ctx context.Context, s jetstream.Stream) (*jetstream.StreamInfo, error) {
		return s.Info(ctx, filter...)
	})
	if err == nil {
		b.newest.Store(in)
		storekit.Note(ctx, b.stamp(in))
	}
	return in, err
}

// stamp is the time of a reply; the zero Stamp if it has none.
func (b *bucket) stamp(in *jetstream.StreamInfo) store.Stamp {
	if in.TimeStamp.IsZero() {
		return store.Stamp{}
	}
	s := store.Stamp{
		Time: in.TimeStamp.UTC().Truncate(time.Microsecond), Granularity: time.Microsecond, Server: "nats",
		History: in.Created.UTC().Format(time.RFC3339Nano),
	}
	if in.Cluster != nil {
		s.Server = in.Cluster.Leader
	}
	if in.Config.Replicas > 1 {
		s.Skew = b.at.skew
	}
	return s
}

// Delete removes the message of a key. JetStream's client doesn't say whether it was there.
func (b *bucket) Delete(ctx context.Context, name string) (bool, error) {
	return ask(ctx, b, func(ctx context.Context, s jetstream.Stream) (bool, error) {
		return true, s.Purge(ctx, jetstream.WithPurgeSubject(b.subject(name)))
	})
}

// Now asks the leader.
func (b *bucket) Now(ctx context.Context) (store.Stamp, error) {
	in, err := b.look(ctx)
	if err != nil {
		return store.Stamp{}, err
	}
	return b.stamp(in), nil
}

// create makes the bucket if it isn't there: on three servers, if there is a cluster.
func (b *bucket) create(ctx context.Context) error {
	_, err := b.look(ctx)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	_, err = call(ctx, b, "."+b.stream(), true, func(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
		replicas := 1
		if js.Conn().ConnectedClusterName() != "" {
			replicas = 3
		}
		return js.CreateStream(ctx, jetstream.StreamConfig{
			Name: b.stream(), Subjects: []string{b.subject("") + ">"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, Replicas: replicas,
			Storage: jetstream.FileStorage, AllowRollup: true, DenyDelete: true,
		})
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil // Another process was faster, with other settings.
	}
	return err
}
