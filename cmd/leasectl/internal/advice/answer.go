package advice

import (
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	mongodriver "go.mongodb.org/mongo-driver/v2/mongo"
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
