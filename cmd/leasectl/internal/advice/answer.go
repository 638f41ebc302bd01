package advice

import (
	"errors"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
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

// leaderless reports that members of a replica set answered, and none is the primary.
func leaderless(err error) bool {
	e, ok := errors.AsType[topology.ServerSelectionError](err)
	return ok && slices.ContainsFunc(e.Desc.Servers, func(s description.Server) bool { return s.Kind != description.Unknown })
}
