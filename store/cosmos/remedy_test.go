package cosmos

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

func TestAnErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	status := func(code int) error {
		return &azcore.ResponseError{StatusCode: code, RawResponse: &http.Response{StatusCode: code, Header: http.Header{}}}
	}
	for name, c := range map[string]struct {
		err   error
		keyed bool
		want  string // how it begins
	}{
		"nobody answered":           {errors.New("no such host"), true, "check the name of the account, "},
		"the service is down":       {status(http.StatusServiceUnavailable), true, "again in a moment: the server answers"},
		"the service gave up":       {status(http.StatusRequestTimeout), true, "again in a moment: the server answers"},
		"the service said no":       {status(http.StatusBadRequest), true, ""},
		"the key is taken":          {status(http.StatusConflict), true, ""},
		"the service throttles":     {status(http.StatusTooManyRequests), true, "again in a moment; if it lasts, the container needs more throughput"},
		"a key is denied":           {status(http.StatusUnauthorized), true, "check the account's key (COSMOS_KEY or "},
		"an identity is denied":     {status(http.StatusForbidden), false, "set COSMOS_KEY or COSMOS_CONNECTION_STRING, or sign in (az login); "},
		"there is no token at all":  {&tokenError{errors.New("none")}, false, "set COSMOS_KEY or "},
		"a region takes no writes":  {status(449), true, ""},
		"the container isn't there": {status(http.StatusNotFound), true, ""},
	} {
		got := (&Ledger{keyed: c.keyed}).meaning(c.err).Remedy
		if !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: to do %q, want %q", name, got, c.want)
		}
	}
}
