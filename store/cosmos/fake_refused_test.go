package cosmos

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// What follows is how an account that must be refused might be taken all the same.

// used is a ledger whose account was found fit, with one record of job.
func (f *fakeAccount) used(t *testing.T, o Options) *Ledger {
	t.Helper()
	l := f.open(t, o)
	must(t, "Append()", l.Append(within(t, time.Second), storetest.Grant("job", 1)))
	return l
}

// signedInTime refuses what is dated wrongly, as Azure does.
func (f *fakeAccount) signedInTime(status int) func(*fakeRequest) *fakeReply {
	return func(r *fakeRequest) *fakeReply {
		at, _ := http.ParseTime(r.Header.Get(headerRequestDate))
		if at.Sub(f.now()).Abs() > 15*time.Minute {
			return refusal(status, "The authorization token is not valid at the current time")
		}
		return nil
	}
}

// An account with several write regions, which UnsafeUnverifiedAccount doesn't accept.
func TestNoReplyMakesAnAccountUnverifiable(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(f *fakeAccount)
		at      int // the first append that is refused; those before fail
	}{
		"408":          {func(f *fakeAccount) { f.hook = answering("account", refusal(408, "timeout")) }, 2},
		"410":          {func(f *fakeAccount) { f.hook = answering("account", refusal(410, "gone")) }, 2},
		"449":          {func(f *fakeAccount) { f.hook = answering("account", refusal(449, "retry with")) }, 2},
		"203":          {func(f *fakeAccount) { f.hook = always("account", reply(203, f.properties)) }, 1},
		"a wrong date": {func(f *fakeAccount) { f.ahead, f.hook = time.Hour, f.signedInTime(403) }, 1},
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			f.properties["enableMultipleWriteLocations"] = true
			c.prepare(f)
			l := f.open(t, Options{UnsafeUnverifiedAccount: true})
			for n := range 2 {
				err := l.Append(within(t, time.Second), storetest.Grant("job", 1))
				if err == nil || n+1 >= c.at && !errors.Is(err, store.ErrRefused) {
					t.Errorf("Append() %d = %v, want ErrRefused from %d on", n+1, err, c.at)
				}
			}
		}))
	}
}

func TestAnAccountThatWasFitIsRefusedWhenItNoLongerIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(f *fakeAccount)
		wait   time.Duration
		want   error
	}{
		"an append under way, sent to a second write region": {func(f *fakeAccount) {
			f.properties["enableMultipleWriteLocations"] = true
			f.properties["writableLocations"] = regions("North Europe", "West Europe")
			f.hook = answering("create", refusal(403, "writes are forbidden", headerSubstatus, substatusWriteForbidden))
		}, 0, store.ErrRefused},
		"it can't be read for a day": {func(f *fakeAccount) {
			f.properties["enableMultipleWriteLocations"] = true
			f.hook = always("account", refusal(403, "no right to readMetadata", headerSubstatus, "5302"))
		}, 24 * time.Hour, store.ErrDenied},
		"it talks nonsense": {func(f *fakeAccount) { f.hook = always("account", reply(200, "garbage")) }, lookAgain, store.ErrRefused},
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			l := f.used(t, Options{})
			f.set(func() { c.change(f) })
			time.Sleep(c.wait)
			for range 3 { // The second finds that another has just checked.
				wantSentinel(t, "Append()", l.Append(within(t, 10*time.Second), storetest.Grant("job", 2)), c.want)
			}
			documenttest.Equal(t, "items of the account", len(f.items["job"]), 1)
		}))
	}
}

func TestWhatWasNotSentIsNotStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(f *fakeAccount)
		want    bool
	}{
		"an account that is refused":        {func(f *fakeAccount) { f.properties["enableMultipleWriteLocations"] = true }, true},
		"a container that is missing":       {func(f *fakeAccount) { f.container = nil }, true},
		"an account that can't be reached":  {func(f *fakeAccount) { f.hook = always("account", hangUp) }, true},
		"an account that throttles":         {func(f *fakeAccount) { f.hook = always("container", throttled("60000")) }, true},
		"an append that is throttled":       {func(f *fakeAccount) { f.hook = always("create", throttled("60000")) }, false},
		"an append that is denied":          {func(f *fakeAccount) { f.hook = always("create", refusal(401, "no")) }, false},
		"an append whose connection breaks": {func(f *fakeAccount) { f.hook = always("create", hangUp) }, false},
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			c.prepare(f)
			err := f.open(t, Options{}).Append(within(t, 5*time.Second), storetest.Grant("job", 1))
			if err == nil || errors.Is(err, store.ErrNotStored) != c.want {
				t.Errorf("Append() = %v, want an error that is ErrNotStored: %v", err, c.want)
			}
		}))
	}
	t.Run("an account that is refused before the second try", bubbled(func(t *testing.T, f *fakeAccount) {
		l := f.used(t, Options{})
		f.hook = on("create", func(*fakeRequest) *fakeReply {
			f.set(func() { f.properties["enableMultipleWriteLocations"] = true })
			l.link.learn(l.link.current, Account{MultipleWrites: true})
			return refusal(449, "retry with")
		})
		err := l.Append(within(t, 5*time.Second), storetest.Grant("job", 2))
		if !errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrNotStored) || f.ops("create") != 2 {
			t.Errorf("Append() = %v after %d creates, want ErrRefused, and that the first try may have been stored", err, f.ops("create")-1)
		}
	}))
}

func TestALookThatBeganEarlierDoesNotOverruleWhatWasToldSince(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		l := f.used(t, Options{})
		time.Sleep(11 * time.Minute)
		// Between the look's two readings the account is changed, and the SDK's own
		// refresh, by the old connection, tells so.
		f.set(func() {
			f.hook = on("container", func(*fakeRequest) *fakeReply {
				f.set(func() { f.properties["enableMultipleWriteLocations"], f.hook = true, nil })
				time.Sleep(900 * time.Millisecond)
				return nil
			})
		})
		done := make(chan error)
		go func() { done <- l.Append(within(t, 5*time.Second), storetest.Grant("job", 2)) }()
		time.Sleep(500 * time.Millisecond)
		_, _ = l.Get(within(t, 100*time.Millisecond), "job", 1)
		synctest.Wait()
		if !l.Account().MultipleWrites {
			t.Error("the refresh showed nothing: the test is void")
		}
		wantSentinel(t, "Append() that looked", <-done, store.ErrRefused)
		wantSentinel(t, "Append() later", l.Append(within(t, 5*time.Second), storetest.Grant("job", 3)), store.ErrRefused)
	})
}
