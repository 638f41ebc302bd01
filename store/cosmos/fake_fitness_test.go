package cosmos

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// What storekit.Fitness says of its checks.
const (
	lookAgain    = 10 * time.Minute
	lookPause    = 30 * time.Second
	lookPatience = 15 * time.Second
	lookWait     = time.Second
)

func TestAccountsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(p map[string]any)
		want   error
		// unsafe is what becomes of it with UnsafeUnverifiedAccount.
		unsafe error
	}{
		{"an account with one region", func(map[string]any) {}, nil, nil},
		{"an account with an odd property that doesn't matter", func(p map[string]any) { p["enablePerPartitionFailoverBehavior"] = "no" }, nil, nil},
		{"multi-region writes", func(p map[string]any) { p["enableMultipleWriteLocations"] = true }, store.ErrRefused, store.ErrRefused},
		{"two regions that take writes, whatever else it says", func(p map[string]any) {
			p["writableLocations"] = regions("West Europe", "North Europe")
		}, store.ErrRefused, store.ErrRefused},
		{"an account that doesn't say", func(p map[string]any) { delete(p, "enableMultipleWriteLocations") }, store.ErrRefused, nil},
		{"properties of another form", func(p map[string]any) { p["enableMultipleWriteLocations"] = "no" }, store.ErrRefused, nil},
		{"an account without properties", func(p map[string]any) { clear(p) }, store.ErrRefused, nil},
	} {
		for _, unsafe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unsafe %v", c.name, unsafe), bubbled(func(t *testing.T, f *fakeAccount) {
				c.change(f.properties)
				f.plant(t, "job", store.Key("job", 1), nil)
				l := f.open(t, Options{UnsafeUnverifiedAccount: unsafe})
				want := c.want
				if unsafe {
					want = c.unsafe
				}
				for name, call := range documenttest.Operations(l, storetest.Grant("other", 2)) {
					err := call(within(t, time.Second))
					switch {
					case want == nil && err != nil:
						t.Errorf("%s() = %v, want nil", name, err)
					case want != nil:
						wantSentinel(t, name+"()", err, want)
					}
				}
				if want != nil && f.ops("create") > 0 {
					t.Error("an append was sent to an account that is refused")
				}
			}))
		}
	}
}

func TestAccountWhoseReadingIsDenied(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.hook = func(r *fakeRequest) *fakeReply {
			if r.op == "account" || r.op == "container" {
				return refusal(403, "no right to readMetadata", headerSubstatus, "5302")
			}
			return nil
		}
		_, _, err := f.open(t, Options{}).Tail(within(t, time.Second), "job", 1)
		wantSentinel(t, "Tail()", err, store.ErrDenied)
		l := f.open(t, Options{URI: "cosmos://acct?unsafeUnverifiedAccount=true"})
		wantErr(t, "Append() with unsafeUnverifiedAccount", l.Append(within(t, time.Second), storetest.Grant("job", 1)), nil)
		if a := l.Account(); a.Verified || !strings.Contains(a.Warning(), "doesn't say") {
			t.Errorf("Account() = %+v, %q, want one that isn't verified, and that said", a, a.Warning())
		}
	})
}

func TestContainersThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change map[string]any
		want   error
		text   string
	}{
		{"items that may be deleted, but only by a field of their own", map[string]any{"defaultTtl": -1}, nil, ""},
		{"a time to live", map[string]any{"defaultTtl": 3600}, store.ErrRefused, "defaultTtl"},
		{"another partition key", map[string]any{"partitionKey": map[string]any{"paths": []string{"/id"}, "kind": "Hash"}}, store.ErrRefused, "/workerType"},
		{"a partition key of several", map[string]any{"partitionKey": map[string]any{"paths": []string{"/workerType", "/id"}, "kind": "MultiHash"}}, store.ErrRefused, "/workerType"},
		{"no partition key", map[string]any{"partitionKey": nil}, store.ErrRefused, "/workerType"},
		{"unique keys", map[string]any{"uniqueKeyPolicy": map[string]any{"uniqueKeys": []any{map[string]any{"paths": []string{"/token"}}}}}, store.ErrRefused, "unique"},
		{"a lazy index", map[string]any{"indexingPolicy": map[string]any{"indexingMode": "lazy", "automatic": true}}, store.ErrRefused, ""},
		{"no unique keys, in many words", map[string]any{"uniqueKeyPolicy": map[string]any{"uniqueKeys": []any{}}}, nil, ""},
	} {
		t.Run(c.name, bubbled(func(t *testing.T, f *fakeAccount) {
			for k, v := range c.change {
				f.container[k] = v
			}
			err := f.open(t, Options{}).Append(within(t, time.Second), storetest.Grant("job", 1))
			if c.want == nil {
				wantErr(t, "Append()", err, nil)
				return
			}
			wantSentinel(t, "Append()", err, c.want)
			documenttest.Says(t, "Append()", err, nil, c.text)
		}))
	}
}

func TestAccountIsLookedAtEveryTenMinutes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		l := f.open(t, Options{})
		read := func() error { _, err := l.Get(within(t, time.Second), "job", 1); return err }
		for range 9 {
			wantSentinel(t, "Get()", read(), store.ErrNotFound)
			time.Sleep(time.Minute)
		}
		documenttest.Equal(t, "looks in the first 9 min", f.ops("container"), 1)
		f.set(func() { f.properties["enableMultipleWriteLocations"] = true })
		time.Sleep(time.Minute)
		wantSentinel(t, "Get() 10 min after the first look", read(), store.ErrRefused)
		wantSentinel(t, "Get() right after", read(), store.ErrRefused)
		f.set(func() { f.properties["enableMultipleWriteLocations"] = false })
		wantSentinel(t, "Get() when it was turned off", read(), store.ErrNotFound)

		// What can't be looked at just now was fit a while ago.
		f.set(func() {
			f.hook = always("account", hangUp)
			f.log = nil
		})
		time.Sleep(time.Hour)
		for range 3 {
			wantSentinel(t, "Get() while the account can't be read", read(), store.ErrNotFound)
		}
		if n := f.ops("account"); n > 2 {
			t.Errorf("readings of the account at once = %d, want no storm", n)
		}
	})
}

func TestContainerThatIsDeletedIsMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		l := f.used(t, Options{})
		before, err := l.Now(within(t, time.Second))
		wantErr(t, "Now()", err, nil)
		f.set(func() { f.container = nil })
		for range 3 {
			wantSentinel(t, "Append()", l.Append(within(t, time.Second), storetest.Grant("job", 2)), store.ErrMissing)
			_, err := l.Get(within(t, time.Second), "job", 1)
			wantSentinel(t, "Get()", err, store.ErrMissing)
			_, _, err = l.Tail(within(t, time.Second), "job", 1)
			wantSentinel(t, "Tail()", err, store.ErrMissing)
			time.Sleep(time.Minute)
		}
		wantErr(t, "Init()", l.Init(within(t, time.Second)), nil)
		wantErr(t, "Get() when it is back", documenttest.ErrorOf(l.Get(within(t, time.Second), "job", 1)), nil)
		after, err := l.Now(within(t, time.Second))
		if err != nil || after.History == "" || after.History == before.History {
			t.Errorf("Now() = %+v, %v, want another history than %q: what was in the container that was deleted may be lost", after, err, before.History)
		}
	})
}

func TestFirstReadingOfTheAccountThatFailsDoesNotStick(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]*fakeReply{
		"a broken connection": hangUp,
		"503":                 refusal(503, "unavailable"),
		"silence":             silence,
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			f.hook = answering("account", answer)
			l := f.open(t, Options{})
			wantSentinel(t, "Append()", l.Append(within(t, time.Second), storetest.Grant("job", 1)), nil)
			synctest.Wait() // Until what is left of it has noticed.
			wantErr(t, "Append() right after", l.Append(within(t, time.Second), storetest.Grant("job", 1)), nil)
		}))
	}
}

func TestFailuresHaveTheAccountLookedAtSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		l := f.open(t, Options{})
		read := func() error { _, err := l.Get(within(t, time.Second), "job", 1); return err }
		wantSentinel(t, "Get()", read(), store.ErrNotFound)
		time.Sleep(time.Minute)
		f.set(func() { f.hook = answering("read", hangUp) })
		wantSentinel(t, "Get() of a broken connection", read(), nil)
		f.set(func() { f.properties["enableMultipleWriteLocations"] = true })
		wantSentinel(t, "Get() right after", read(), store.ErrRefused)
	})
}

// A request that is refused as invalid may mean that the account isn't strongly consistent any more. That it can't be read
// just then doesn't: its own endpoint may be down where that of the region is not.
func TestOperationsGoOnIfTheAccountCannotBeReadAfterAnInvalidRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		l := f.open(t, Options{})
		wantErr(t, "Append()", l.Append(within(t, time.Minute), storetest.Grant("job", 1)), nil)
		var once sync.Once
		f.hook = func(r *fakeRequest) (answer *fakeReply) {
			switch r.op {
			case "create":
				once.Do(func() { answer = refusal(400, "some proxy's words") })
			case "account", "container":
				return refusal(503, "the service is unavailable")
			}
			return answer
		}
		wantSentinel(t, "Append() that is refused as invalid", l.Append(within(t, time.Minute), storetest.Grant("job", 2)), nil)
		for seq := range int64(3) {
			wantErr(t, "Append() after that", l.Append(within(t, time.Minute), storetest.Grant("job", 2+seq)), nil)
		}
	})
}
