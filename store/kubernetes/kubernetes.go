package kubernetes

import (
	"context"
	"time"

	"github.com/benbjohnson/clock"
	"k8s.io/client-go/rest"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// DefaultServerSkew is how far the clocks of the API servers are assumed to be apart.
const DefaultServerSkew = 250 * time.Millisecond

// Options of Open. All are optional, but for URI.
type Options struct {
	// URI names the namespace:
	//
	//	k8s:jobs?context=production&kubeconfig=PATH
	//
	// Without a namespace it is that of the pod, or of the kubeconfig's context. Parameters:
	//
	//	kubeconfig=PATH   default: as kubectl has it, $KUBECONFIG or ~/.kube/config; else the pod's service account
	//	context=NAME      of the kubeconfig; default: its current one
	//	serverSkew=500ms  Options.ServerSkew
	//	oneServer=true    Options.OneServer
	URI string
	// Config says how to reach the API server, in place of the URI's kubeconfig and context, as a clientset's does. Tokens may
	// rotate, by its BearerTokenFile (read again every minute), ExecProvider, AuthProvider or WrapTransport. Its QPS, Burst,
	// RateLimiter and Timeout don't matter: nothing delays operations but the server. A Transport is refused. It is copied, and
	// its connections are the ledger's own. Default: as URI says.
	Config *rest.Config

	// ServerSkew is how far the clocks of the cluster's API servers may differ at most. It is an assumption that can't be
	// checked, and part of each stamp. Default: that of the URI, else DefaultServerSkew. It can't be negative.
	ServerSkew time.Duration
	// OneServer says that the cluster has one API server, and always will, so that there is one clock, and no skew.
	// Default: that of the URI, else false.
	OneServer bool

	// Clock measures what the store waits for. It doesn't measure leases. Default: the real clock.
	Clock clock.Clock
}

// Ledger keeps ledgers in a namespace of Kubernetes. It is a store.Ledger, store.Roster, store.Pager,
// store.Watcher and store.Described, and safe for concurrent use.
type Ledger struct {
	*storekit.ObjectLedger

	c      *cluster
	checks *storekit.Checks
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Roster = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
)

// String names the namespace and the API server, without secrets.
func (l *Ledger) String() string { return "k8s:" + l.c.namespace + " at " + l.c.host }

// CheckRights tries to create a record without storing it, as Kubernetes' dry runs do.
func (l *Ledger) CheckRights(ctx context.Context) error {
	_, err := storekit.Run(ctx, l.c.runner, "rights", "", func(ctx context.Context) (none struct{}, err error) {
		if err := l.checks.Ask(ctx, store.CheckAppend); err != nil {
			return none, err
		}
		return none, l.checks.Ask(ctx, store.CheckConstraints)
	})
	return err
}

// Examine reads the namespace, its quotas and its records, and tries the rights by dry runs. It stores nothing.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) { return l.checks.Examine(ctx) }
