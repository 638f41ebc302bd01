package etcd

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestAPasswordMayRotate(t *testing.T) {
	t.Parallel()
	s := withUsers(t)
	admin := as(t, s.URI(), "root")
	var password atomic.Pointer[string]
	first, sealed := canary, errors.New("the vault is sealed")
	password.Store(&first)
	l := opened(t, Options{URI: fresh(s.URI()), User: "worker", PasswordFunc: func(context.Context) (string, error) {
		if p := password.Load(); p != nil {
			return *p, nil
		}
		return "", sealed
	}})
	for seq, next := range []string{"", "second-s3cret", "third-s3cret"} {
		if next != "" {
			if _, err := admin.UserChangePassword(within(t), "worker", next); err != nil {
				t.Fatal(err)
			}
			password.Store(&next)
		}
		if err := l.Append(within(t), storetest.Grant("job", int64(seq+1))); err != nil {
			t.Errorf("Append() after %d changes of the password = %v", seq, err)
		}
	}
	password.Store(nil)
	if _, err := admin.UserChangePassword(within(t), "worker", "fourth-s3cret"); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(within(t), storetest.Grant("job", 4)); !errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), "PasswordFunc: the vault is sealed") {
		t.Errorf("Append() without a password = %v, want that nothing is stored, and why", err)
	}
}

func TestALoginIsGivenOnce(t *testing.T) {
	t.Parallel()
	ask := func(context.Context) (string, error) { return canary, nil }
	for name, o := range map[string]Options{
		"two passwords":            {URI: "etcd://h", User: "worker", Password: canary, PasswordFunc: ask},
		"a function without user":  {URI: "etcd://h", PasswordFunc: ask},
		"a function beside a file": {URI: "etcd://h?user=worker&passwordFile=/none", PasswordFunc: ask},
	} {
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "options: ") || strings.Contains(err.Error(), canary) {
			t.Errorf("Open() with %s = %v, want an error", name, err)
		}
	}
}
