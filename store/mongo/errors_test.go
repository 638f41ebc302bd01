package mongo

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// An append is sent once, whatever a server says of another try: else the second reply would say nothing about the first.
func TestAppendErrorsByTheServersReply(t *testing.T) {
	t.Parallel()
	retryable := bson.E{Key: "errorLabels", Value: bson.A{"RetryableWriteError", "SystemOverloadedError", "RetryableError"}}
	const dup = "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: _id_ dup key"
	for _, c := range []struct {
		name  string
		reply bson.D
		want  error
		also  error
		after time.Duration
		// certain is set if the reply shows that nothing was stored, and no conflict.
		certain bool
	}{
		{name: "duplicate key", reply: writeError(codeDuplicate, dup), want: store.ErrConflict},
		{name: "duplicate key as a command error", reply: commandError(codeDuplicate, "DuplicateKey", dup), want: store.ErrConflict},
		{name: "duplicate key in another index", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: once dup key"), want: store.ErrRefused, certain: true},
		{name: "duplicate key in another index of an old server", reply: writeError(codeDuplicate, "E11000 duplicate key error index: WorkerProcess.WorkerLeases.$once dup key"), want: store.ErrRefused, certain: true},
		{name: "duplicate key in an index whose name has a space", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: one claim dup key: { claim: \"x\" }"), want: store.ErrRefused, certain: true},
		{name: "duplicate key in an index whose name ends like the key's", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: an _id_ dup key: { claim: \"x\" }"), want: store.ErrRefused, certain: true},
		{name: "duplicate key in an index whose name begins like the key's", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: _id_ twice dup key: { claim: \"x\" }"), want: store.ErrRefused, certain: true},
		{name: "duplicate key in an index named like a collection's key", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: once$_id_ dup key: { claim: \"x\" }"), want: store.ErrRefused, certain: true},
		{name: "duplicate key in an index whose value reads like the key", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: once dup key: { claim: \"index: _id_ dup key\" }"), want: store.ErrRefused, certain: true},
		{name: "duplicate key with a collation", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: _id_ collation: { locale: \"de\" } dup key: { _id: \"x\" }"), want: store.ErrConflict},
		{name: "duplicate key of a server that names only the index", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: WorkerProcess.WorkerLeases index: _id_"), want: store.ErrConflict},
		{name: "duplicate key of an old server that names the key", reply: writeError(codeDuplicate, "E11000 duplicate key error index: WorkerProcess.WorkerLeases.$_id_ dup key: { : \"x\" }"), want: store.ErrConflict},
		{name: "duplicate key whose value names another index", reply: writeError(codeDuplicate, dup+": { _id: \"index: once dup key\" }"), want: store.ErrConflict},
		{name: "duplicate key of a server that names no index", reply: writeError(codeDuplicate, "E11000 duplicate key error collection: d.c Failed _id or unique index constraint"), want: store.ErrConflict},
		{name: "duplicate key of an old server", reply: writeError(codeDuplicateOnUpdate, dup), want: store.ErrConflict},
		// Another operation holds the key now. Whether that, or this, is stored in the end stays open.
		{name: "operation in progress of Cosmos DB", reply: commandError(117, "ConflictingOperationInProgress", "Your request conflicts")},
		{name: "operation in progress as a write error", reply: writeError(117, "Your request conflicts")},
		{
			name:  "throttled by Cosmos DB",
			reply: commandError(codeThrottled, "RequestRateTooLarge", "Error=16500, RetryAfterMs=34, Details='Response status code does not indicate success: TooManyRequests (429)"),
			want:  store.ErrThrottled, after: 34 * time.Millisecond,
		},
		{name: "throttled as a write error", reply: writeError(codeThrottled, "Error=16500, RetryAfterMs=1200, Details=''"), want: store.ErrThrottled, after: 1200 * time.Millisecond},
		{name: "throttled without a wait", reply: commandError(codeThrottled, "RequestRateTooLarge", "Request rate is large"), want: store.ErrThrottled},
		{name: "throttled with a wait beyond reason", reply: commandError(codeThrottled, "RequestRateTooLarge", "RetryAfterMs=99999999999999999999"), want: store.ErrThrottled},
		{name: "overloaded", reply: commandError(codeRateLimited, "IngressRequestRateLimitExceeded", "too many"), want: store.ErrThrottled},
		{name: "no right", reply: commandError(codeUnauthorized, "Unauthorized", "not authorized on WorkerProcess to execute command { insert: \"WorkerLeases\" }"), want: store.ErrDenied, certain: true},
		{name: "no right as a write error", reply: writeError(codeUnauthorized, "not authorized"), want: store.ErrDenied, certain: true},
		{name: "Atlas says no", reply: commandError(codeAtlasError, "AtlasError", "user is not allowed to do action [insert]"), want: store.ErrDenied, certain: true},
		{name: "Atlas says that its quota is used up", reply: commandError(codeAtlasError, "AtlasError", "you are over your space quota, using 513 MB of 512 MB")},
		{name: "a view", reply: commandError(codeNotOnView, "CommandNotSupportedOnView", "Namespace jobs.leases is a view, not a collection"), want: store.ErrRefused, certain: true},
		{name: "a validator", reply: writeError(codeValidationFailure, "Document failed validation"), want: store.ErrRefused, certain: true},
		{
			name:  "a validator, not confirmed",
			reply: append(writeError(codeValidationFailure, "Document failed validation"), unconfirmed(50, "operation exceeded time limit")[2]),
			want:  store.ErrRefused,
		},
		{name: "not confirmed in time", reply: unconfirmed(64, "waiting for replication timed out")},
		{name: "not confirmed for want of nodes", reply: unconfirmed(100, "Not enough data-bearing nodes")},
		{name: "not confirmed, with a code that means a conflict elsewhere", reply: unconfirmed(codeDuplicate, "odd")},
		{name: "not confirmed, with a code that means denied elsewhere", reply: unconfirmed(codeUnauthorized, "odd")},
		{
			name:  "duplicate key and not confirmed",
			reply: append(writeError(codeDuplicate, dup), unconfirmed(64, "timed out")[2]),
			want:  store.ErrConflict,
		},
		{name: "a time-out of the server, whose limit is that of the context", reply: commandError(50, "MaxTimeMSExpired", "operation exceeded time limit"), also: context.DeadlineExceeded},
		{name: "an election", reply: commandError(10107, "NotWritablePrimary", "not primary")},
		{name: "a shutdown", reply: commandError(91, "ShutdownInProgress", "shutting down")},
		{name: "an internal error with a long text of many lines", reply: commandError(8, "UnknownError", strings.Repeat("broken\r\nand long ", 1000))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &fakeServer{reply: answers(map[string]bson.D{"insert": append(c.reply, retryable)})})
			f.greet(append(member(f.addr), bson.E{Key: "logicalSessionTimeoutMinutes", Value: int32(30)}))
			err := f.open(Options{}).Append(within(t, patience), storetest.Grant("job", 7))
			documenttest.Equal(t, "inserts sent", len(f.sent("insert")), 1)
			wantSentinel(t, "Append()", err, c.want)
			if err == nil {
				return
			}
			if c.also != nil && !errors.Is(err, c.also) {
				t.Errorf("Append() = %v, want %v in it", err, c.also)
			}
			if want := "mongo: append job:00000000000000000007: "; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("Append() = %v, want it to begin with %q", err, want)
			}
			if got, want := errors.Is(err, store.ErrNotStored), c.certain; got != want {
				t.Errorf("Append() = %v: surely not stored: %v, want %v", err, got, want)
			}
			if throttled, ok := errors.AsType[*store.ThrottledError](err); ok && throttled.RetryAfter != c.after {
				t.Errorf("RetryAfter = %v, want %v", throttled.RetryAfter, c.after)
			}
		})
	}
}

// classify is an error of the driver as operations return it.
func classify(ctx context.Context, err error) error {
	l := &Ledger{login: &login{}}
	l.newRunner()
	return l.runner.Failed(ctx, "test", "", err)
}

func TestDriverErrorsStayInReach(t *testing.T) {
	t.Parallel()
	err := classify(t.Context(), mongo.CommandError{Code: 10107, Name: "NotWritablePrimary"})
	if ce, ok := errors.AsType[mongo.CommandError](err); !ok || ce.Code != 10107 {
		t.Errorf("classify() = %v, want the driver's error in its chain", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "classify() after the context ended", classify(ctx, errors.New("connection lost")), context.Canceled)
	wantSentinel(t, "a closed client", classify(t.Context(), mongo.ErrClientDisconnected), store.ErrClosed)
}

func TestRefusedConnectionEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 200 * time.Millisecond
		l := open(t, Options{URI: "mongodb://jane:hunter2hunter2@" + network.Address() + "/"})
		for name, call := range documenttest.Operations(l, storetest.Grant("job", 1)) {
			began := time.Now()
			err := call(within(t, most))
			documenttest.Equal(t, "how long "+name+"() of a closed port took", time.Since(began), most)
			wantSentinel(t, name+"()", err, nil)
			documenttest.Says(t, name+"()", err, context.DeadlineExceeded, "refused")
			if err != nil {
				wantNoSecret(t, name, err.Error(), "hunter2hunter2")
			}
		}
	})
}

// A password that is in other texts by chance would be betrayed by what its removal
// garbles.
func TestADriversErrorShowsNoPasswordAndIsNotGarbled(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"e", "%3A", "HOST", "jobs", "jobs.WorkerLeases", "WorkerLeases", "SCRAM-SHA-256", "connection", "now", "%65", "p%40ss", "hunter2%2Fhunter2"} {
		t.Run(password, func(t *testing.T) {
			t.Parallel()
			plain, err := url.PathUnescape(password)
			must(t, "PathUnescape()", err)
			for _, form := range []string{password, plain} {
				f := serve(t, &fakeServer{})
				host, _, _ := net.SplitHostPort(f.addr)
				password, form := strings.Replace(password, "HOST", host, 1), strings.Replace(form, "HOST", host, 1)
				said := func(login, parameter string) string {
					return "Authentication failed: no connection from mongodb://" + login + "@" + host + "/jobs?proxyPassword=" + parameter + "&w=1 to jobs.WorkerLeases"
				}
				f.reply = answers(map[string]bson.D{"saslStart": commandError(codeAuthenticationFailed, "AuthenticationFailed", said("jane:"+form, form))})
				l := f.open(Options{URI: "mongodb://jane:" + password + "@" + f.addr + "/jobs?authMechanism=SCRAM-SHA-256"})
				_, err := l.Now(within(t, patience))
				wantSentinel(t, "Now()", err, store.ErrDenied)
				masked := said("***:***", "***")
				if strings.Contains(form, "@") { // What stands before the last @ may all be a password.
					masked = "mongodb://***:***&w=1 to jobs.WorkerLeases"
				}
				documenttest.Says(t, "Now()", err, nil, "mongo: now: access denied: authentication failed (user jane, authenticated in jobs): ", strings.TrimPrefix(masked, "Authentication failed: "))
				const whole = "connection() error occurred during connection handshake: auth error: sasl conversation error: unable to authenticate using mechanism \"SCRAM-SHA-256\": (AuthenticationFailed) "
				if got := store.Detail(err); !strings.HasPrefix(got, whole) || !strings.HasSuffix(got, masked) {
					t.Errorf("Detail() = %q, want all that the driver said, with %q", got, masked)
				}
			}
		})
	}
}
