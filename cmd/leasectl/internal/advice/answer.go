package advice

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// ailing reports that a server, or a gateway in front of it, answered that it can't
// serve now.
func ailing(err error) bool {
	r, ok := errors.AsType[*azcore.ResponseError](err)
	return ok && (r.StatusCode >= http.StatusInternalServerError || r.StatusCode == http.StatusRequestTimeout)
}

// answered reports that an error is the answer of a server.
func answered(err error) bool {
	if _, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return true
	}
	_, ok := errors.AsType[mongodriver.ServerError](err)
	return ok && !mongodriver.IsNetworkError(err) && !mongodriver.IsTimeout(err)
}

// otherSet reports that a MongoDB driver left out the servers of the URI, because they are in
// another replica set than it names.
func otherSet(err error) bool {
	e, ok := errors.AsType[topology.ServerSelectionError](err)
	if !ok || e.Desc.SetName == "" {
		return false
	}
	direct := e.Desc.Kind == description.TopologyKindSingle
	return len(e.Desc.Servers) == 0 || direct && e.Desc.Servers[0].Kind == description.Unknown && e.Desc.Servers[0].LastError == nil
}

// share is how many of some servers are meant.
type share int

const (
	none share = iota
	some
	all
)

// members says of how many servers something is true if a MongoDB driver found none that it could
// use.
func members(err error, is func(description.Server) bool) share {
	e, ok := errors.AsType[topology.ServerSelectionError](err)
	switch {
	case !ok || !slices.ContainsFunc(e.Desc.Servers, is):
		return none
	case slices.ContainsFunc(e.Desc.Servers, func(s description.Server) bool { return !is(s) }):
		return some
	}
	return all
}

func isKnown(s description.Server) bool     { return s.Kind != description.Unknown }
func isSecondary(s description.Server) bool { return s.Kind == description.ServerKindRSSecondary }

// isGhost reports that a server was started as a member of a replica set, and isn't in one.
func isGhost(s description.Server) bool { return s.Kind == description.ServerKindRSGhost }

// renamed reports that a MongoDB driver reached none of the servers, and knows them by names that
// aren't in the URI: by those in the replica set's configuration, which replace the URI's.
func renamed(t storeuri.Target, err error) bool {
	return t.Scheme == storeuri.MongoDB && members(err, func(s description.Server) bool {
		addr := strings.ToLower(s.Addr.String())
		host, _, cut := strings.Cut(addr, ":27017")
		if !cut {
			host = addr
		}
		return !isKnown(s) && !strings.Contains(addr, "/") && !strings.Contains(strings.ToLower(t.Shown), host)
	}) == all
}

// nameless reports that the DNS has no such name, or didn't answer.
func nameless(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// unreached reports that no connection could be made or kept, or that no answer came in time.
func unreached(err error) bool {
	if _, ok := errors.AsType[topology.ServerSelectionError](err); ok {
		return true
	}
	if _, ok := errors.AsType[topology.ConnectionError](err); ok {
		return true
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || mongodriver.IsNetworkError(err) || mongodriver.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded)
}
