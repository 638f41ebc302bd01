package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsio "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// dialTime bounds a try to connect to one server, reconnectWait is the wait after all were tried, and a server that is
	// silent for pingTime twice is given up.
	dialTime      = 2 * time.Second
	reconnectWait = 100 * time.Millisecond
	pingTime      = 5 * time.Second
	// askTime is how long an answer is waited for before a request is sent again, if it may be: while a leader is elected,
	// nobody answers, and nobody keeps what was asked. putTime bounds one that may not.
	askTime = time.Second
	putTime = time.Minute
)

// codeOtherStream is the code of JetStream's error of a message for another stream.
const codeOtherStream jetstream.ErrorCode = 10060

// connector makes the one connection of a ledger, when it is first needed.
type connector struct {
	mu      sync.Mutex
	conn    atomic.Pointer[natsio.Conn] // set under mu, and read by those who don't wait until it is made, too
	js      jetstream.JetStream
	stream  jetstream.Stream
	closed  bool
	waiting sync.Map // of *waiter
}

// waiter is a request that waits for its reply. subject is what it is sent to, or the end of that.
type waiter struct {
	subject string
	fail    context.CancelCauseFunc
}

// connected returns a connection that is up. Otherwise nothing was sent.
func (b *bucket) connected() (jetstream.JetStream, error) {
	c := &b.connector
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, storekit.NotStored(store.ErrClosed)
	}
	if c.conn.Load() == nil {
		conn, err := natsio.Connect(b.at.servers(), b.options...)
		if err != nil {
			return nil, storekit.NotStored(err)
		}
		c.conn.Store(conn)
		if c.js, err = jetstream.New(conn, jetstream.WithDefaultTimeout(putTime)); err != nil {
			return nil, storekit.NotStored(err)
		}
	}
	if conn := c.conn.Load(); !conn.IsConnected() {
		err := conn.LastError()
		if err == nil {
			err = natsio.ErrConnectionReconnecting
		}
		return nil, storekit.NotStored(err)
	}
	return c.js, nil
}

// Close closes the connection.
func (b *bucket) Close() error {
	c := &b.connector
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if conn := c.conn.Load(); conn != nil {
		conn.Close()
	}
	return nil
}

// lost ends all requests: what was sent on a connection that breaks gets no reply on the next one.
func (b *bucket) lost(_ *natsio.Conn, err error) {
	b.fail("", fmt.Errorf("the connection was lost: %w", err))
}

// refused ends the requests that a server doesn't allow: it says so apart from them, and they would get no reply.
func (b *bucket) refused(_ *natsio.Conn, _ *natsio.Subscription, err error) {
	if errors.Is(err, natsio.ErrPermissionViolation) {
		b.fail(err.Error(), storekit.NotStored(fmt.Errorf("%w: %w", store.ErrDenied, err)))
	}
}

// fail ends the requests that a text names, or all if it names none.
func (b *bucket) fail(text string, why error) {
	all := text == "" || strings.Contains(text, "for Subscription")
	b.connector.waiting.Range(func(key, _ any) bool {
		if w := key.(*waiter); all || strings.Contains(text, w.subject+strconv.Quote("")[1:]) { //nolint:forcetypeassert // It has no others.
			w.fail(why)
		}
		return true
	})
}

// call makes a request, and waits for the reply: again and again if it may be sent twice.
func call[T any](ctx context.Context, b *bucket, subject string, again bool, do func(ctx context.Context, js jetstream.JetStream) (T, error)) (v T, err error) {
	for {
		js, err := b.connected()
		if err != nil {
			return v, err
		}
		within := putTime
		if again {
			within = askTime
		}
		inner, fail := context.WithCancelCause(ctx)
		w := &waiter{subject, fail}
		b.connector.waiting.Store(w, true)
		timed, cancel := b.clock.WithTimeout(inner, within)
		v, err = do(timed, js)
		silent := err != nil && timed.Err() != nil && inner.Err() == nil
		if why := context.Cause(inner); err != nil && why != nil && ctx.Err() == nil {
			err = why
		}
		cancel()
		b.connector.waiting.Delete(w)
		fail(nil)
		if !silent || !again {
			return v, err
		}
	}
}

// code is that of an error of JetStream, or 0.
func code(err error) jetstream.ErrorCode {
	if e, ok := errors.AsType[jetstream.JetStreamError](err); ok && e.APIError() != nil {
		return e.APIError().ErrorCode
	}
	return 0
}

// meaning is what an error means. These errors of a reply come before the message is proposed to the other servers. That there is no
// space is found out by each server on its own: so that is unknown.
func meaning(err error) storekit.Meaning {
	switch code(err) { //nolint:exhaustive // The others mean what their text says.
	case jetstream.JSErrCodeStreamWrongLastSequence:
		return storekit.Meaning{Is: store.ErrConflict, Sound: true}
	case jetstream.JSErrCodeStreamNotFound:
		return storekit.Meaning{Is: store.ErrMissing, NotStored: true, Text: "there is no such bucket"}
	case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return storekit.Meaning{Is: store.ErrMissing, NotStored: true, Text: "JetStream isn't enabled, for the server or for the account"}
	case jetstream.JSErrCodeStreamWrongLastSequenceConstant, jetstream.JSErrCodeStreamMessageExceedsMaximum, codeOtherStream:
		return storekit.Meaning{NotStored: true, Sound: true}
	}
	for _, denied := range []error{natsio.ErrAuthorization, natsio.ErrAuthExpired, natsio.ErrAuthRevoked, natsio.ErrAccountAuthExpired} {
		if errors.Is(err, denied) {
			return storekit.Meaning{Is: store.ErrDenied}
		}
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, natsio.ErrNoResponders) {
		return storekit.Meaning{NotStored: true, Text: "no server answers for JetStream, or for that bucket, at present"}
	}
	return storekit.Meaning{NotStored: errors.Is(err, natsio.ErrReconnectBufExceeded) || errors.Is(err, natsio.ErrMaxPayload)}
}
