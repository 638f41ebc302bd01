package etcd

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// errLearner is that of a member without a vote, which refuses what isn't meant for it.
var errLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// refusals are the errors by which etcd says that it did nothing. Their source is the server's code, of 3.4 to 3.7: each
// is returned before the request is proposed to the cluster, or by all members in place of applying it. Of others, such
// as time-outs and changes of the leader, the outcome is unknown.
var refusals = map[error]storekit.Meaning{
	// The quota is used up (etcdserver/quota.go), or the NOSPACE alarm is on (apply: applierV3Capped).
	rpctypes.ErrNoSpace: {Text: "the cluster's space is used up (NOSPACE): compact and defragment it, then disarm the alarm"},
	// More entries are committed and not yet applied than etcd allows (v3_server.go).
	rpctypes.ErrTooManyRequests: {Is: store.ErrThrottled},
	// The request is larger than --max-request-bytes (v3_server.go).
	rpctypes.ErrRequestTooLarge: {},
	// Learners refuse most requests (v3rpc/interceptor.go).
	errLearner: {Text: "the endpoint is a learner, which serves no requests: name other members, too"},
	// The CORRUPT alarm is on (apply: applierV3Corrupt).
	rpctypes.ErrCorrupt: {Is: store.ErrRefused},

	// Rights are checked before a transaction is applied (auth/store.go, apply_auth.go).
	rpctypes.ErrPermissionDenied: {Is: store.ErrDenied, Text: "the user's roles don't allow it"},
	rpctypes.ErrUserEmpty:        {Is: store.ErrDenied, Text: "the cluster asks for a user, and none was given"},
	rpctypes.ErrAuthFailed:       {Is: store.ErrDenied, Text: "the user or the password is wrong"},
	rpctypes.ErrUserNotFound:     {Is: store.ErrDenied},
	rpctypes.ErrInvalidAuthToken: {Is: store.ErrDenied, Text: "the token isn't accepted"},
	rpctypes.ErrAuthOldRevision:  {Is: store.ErrDenied, Text: "users or roles are being changed"},
}

// meaning says, too, if the password that isn't accepted is none that its file has now.
func (c *cluster) meaning(err error) storekit.Meaning {
	m := meaning(err)
	if errors.Is(err, rpctypes.ErrAuthFailed) {
		m.Text = c.passwords.Explain(errors.New(m.Text)).Error()
	}
	return m
}

// meaning is what an error of etcd's client means.
func meaning(err error) storekit.Meaning {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		m, known := refusals[e]
		m.NotStored = known
		m.Sound = known && !errors.Is(m.Is, store.ErrRefused)
		return m
	}
	if code := status.Code(err); code == codes.Unauthenticated || code == codes.PermissionDenied {
		return storekit.Meaning{Is: store.ErrDenied} // by something before etcd
	}
	return storekit.Meaning{}
}
