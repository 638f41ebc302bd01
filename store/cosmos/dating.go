package cosmos

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// misdated reports whether a request may have been refused for its date, which is that
// of the account from the next one on.
func (l *Ledger) misdated(reply *http.Response) bool {
	if reply == nil || reply.Request == nil {
		return false
	}
	sent, err := http.ParseTime(reply.Request.Header.Get(headerRequestDate))
	return err == nil && l.dating.Misdated(sent, reply)
}

// datingPolicy sets the date of a request before it is signed.
type datingPolicy struct{ ledger *Ledger }

func (p datingPolicy) Do(req *policy.Request) (*http.Response, error) {
	req.Raw().Header.Set(headerRequestDate, p.ledger.dating.Now().UTC().Format(http.TimeFormat))
	return req.Next()
}
