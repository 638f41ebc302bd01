package cosmos

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// keyed has an account key that changes.
type keyed struct {
	key   atomic.Pointer[string]
	asked atomic.Int64
	err   error
	// signed says that the newest connection was made with the key of now.
	signed atomic.Bool
}

func (k *keyed) rotate(key string) {
	key = base64.StdEncoding.EncodeToString([]byte(key))
	k.key.Store(&key)
	k.signed.Store(false)
}

func (k *keyed) ask(context.Context) (string, error) {
	k.asked.Add(1)
	return *k.key.Load(), k.err
}

// check refuses requests for the account that aren't signed with the key of now, as Azure does, and others of connections
// that haven't sent one since.
func (k *keyed) check(r *fakeRequest) *fakeReply {
	if r.op == "account" {
		secret, _ := base64.StdEncoding.DecodeString(*k.key.Load())
		h := hmac.New(sha256.New, secret)
		_, _ = h.Write([]byte("get\n\n\n" + strings.ToLower(r.Header.Get(headerRequestDate)) + "\n\n"))
		k.signed.Store(r.Header.Get("Authorization") == url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(h.Sum(nil))))
	}
	if !k.signed.Load() {
		return refusal(http.StatusUnauthorized, "The input authorization token can't serve the request")
	}
	return nil
}

func TestAnAccountKeyMayRotate(t *testing.T) {
	t.Run("", bubbled(func(t *testing.T, f *fakeAccount) {
		k := &keyed{}
		k.rotate("first")
		f.hook = k.check
		l := f.open(t, Options{KeyFunc: k.ask})
		must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
		must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 2)))
		if n := k.asked.Load(); n != 1 {
			t.Errorf("KeyFunc was asked %d times for one connection, want once", n)
		}
		k.rotate("second")
		err := l.Append(within(t, patience), storetest.Grant("job", 3))
		wantSentinel(t, "Append() that finds the key replaced", err, store.ErrDenied)
		must(t, "Append() with the new key", l.Append(within(t, patience), storetest.Grant("job", 3)))
		_ = l.Close(t.Context())
	}))
}

func TestAKeyThatCanNotBeHadStoresNothing(t *testing.T) {
	t.Parallel()
	f, k := newFake(), &keyed{err: errors.New("the vault is sealed")}
	k.rotate("first")
	err := f.open(t, Options{KeyFunc: k.ask}).Append(within(t, patience), storetest.Grant("job", 1))
	if !errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), "KeyFunc: the vault is sealed") {
		t.Errorf("Append() = %v, want that nothing is stored, and why", err)
	}
	for name, o := range map[string]Options{
		"two keys":           {URI: "cosmos://acct", Key: "a2V5", KeyFunc: k.ask},
		"a key and tokens":   {URI: "cosmos://acct", KeyFunc: k.ask, Credential: &fakeCredential{}},
		"one of the portal ": {ConnectionString: "AccountEndpoint=https://acct.documents.azure.com:443/;AccountKey=a2V5;", KeyFunc: k.ask},
	} {
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "KeyFunc") {
			t.Errorf("Open() with %s = %v, want an error that names KeyFunc", name, err)
		}
	}
}
