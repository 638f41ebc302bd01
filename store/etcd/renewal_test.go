package etcd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestCertificatesAreRenewedOnDisk(t *testing.T) {
	t.Parallel()
	ca, key := documenttest.Certificate(t)
	client, clientKey := documenttest.Certificate(t, "worker")
	servers := documenttest.Renewable(t, ca, key, client)
	s := etcdpeer.Start(t, etcdpeer.Options{Cert: servers[0], Key: servers[1], Flags: []string{"--client-cert-auth", "--trusted-ca-file", servers[2]}})
	at := documenttest.Renewable(t, ca, client, clientKey)
	l := opened(t, Options{URI: s.URI() + "test?ca=" + at[0] + "&cert=" + at[1] + "&key=" + at[2] + "&oneMember=true"})
	ca, key = documenttest.Certificate(t)
	client, clientKey = documenttest.Certificate(t, "worker")
	documenttest.GoesOn(t, l, func() {
		for path, by := range map[string]string{at[0]: ca, at[1]: client, at[2]: clientKey, servers[0]: ca, servers[1]: key, servers[2]: client} {
			documenttest.Renew(t, path, by)
		}
		s.Kill()
		s.Restart()
	})
	_, err := l.Now(within(t)) // by another protocol
	documenttest.Must(t, "Now()", err)
	documenttest.GoesOn(t, l, func() { // What was whole last is used.
		documenttest.Must(t, "Remove()", os.Remove(at[0]))
		documenttest.Renew(t, at[1], ca) // the key isn't written yet
		s.Kill()
		s.Restart()
	})
	other, otherKey := documenttest.Certificate(t)
	documenttest.Renew(t, servers[0], other)
	documenttest.Renew(t, servers[1], otherKey)
	s.Kill()
	s.Restart()
	documenttest.ComesToSay(t, "Append() to a server of another authority", func(ctx context.Context, _ int) error {
		return l.Append(ctx, storetest.Grant("job", 1))
	}, strings.Join(at, ", ")+" can't be read now", "ca: ")
}

func TestAPasswordIsRenewedInItsFile(t *testing.T) {
	t.Parallel()
	s := withUsers(t)
	admin := as(t, s.URI(), "root")
	at := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		documenttest.Must(t, "WriteFile()", os.WriteFile(at, []byte(password+"\n"), 0o600))
	}
	write(canary)
	l := opened(t, Options{URI: fresh(s.URI()) + "?user=worker&passwordFile=" + at})
	change := func(password string) {
		_, err := admin.UserChangePassword(within(t), "worker", password)
		documenttest.Must(t, "UserChangePassword()", err)
	}
	documenttest.GoesOn(t, l, func() {
		write("second-s3cret")
		change("second-s3cret")
	})
	documenttest.Must(t, "Remove()", os.Remove(at))
	change("third-s3cret")
	err := l.Append(within(t), storetest.Grant("job", 1))
	documenttest.Says(t, "Append() with the password of before", err, store.ErrNotStored, at+" can't be read now")
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("Append() shows a password: %v", err)
	}
}
