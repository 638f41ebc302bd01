package storekit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// CheckCondition is the check of a Bucket that the service heeds If-None-Match.
const CheckCondition = "condition"

const (
	// probeName is the name, in the ledger's folder, of an object that shows whether the service heeds If-None-Match. It is
	// beside the worker types, none of which can have this name, so that who may append may write it.
	probeName = recordFolder + "-probe"
	// maxReply bounds the size of one reply. A list of 5,000 names has less than 8 MB.
	maxReply = 16 << 20
	// mostProbes is how often that object is put while the service fails, and probePause the wait, longer each time.
	mostProbes = 4
	probePause = 50 * time.Millisecond
)

// ErrForeign is the error of a success that has not got what each service says with it: perhaps a portal or a proxy has
// answered in its place. Nothing is known by it.
var ErrForeign = errors.New("the reply is none of the service: is that its endpoint, and no proxy before it?")

// BucketOptions of OnBucket. All are required, but for those that say so.
type BucketOptions struct {
	// Store is the name of the store, with which its errors begin, and URI that of the ledger, for people.
	Store, URI string
	// Service and Kind are what people call the service and what keeps objects there, such as "bucket", whose name is Name.
	Service, Kind, Name string
	// Folder is where the ledger's objects are: empty, or a name that ends with a slash.
	Folder string
	// Endpoint is the URL of the service, or nil if that is its provider's own.
	Endpoint *url.URL
	// Skew is how far the servers' clocks are assumed to be apart.
	Skew time.Duration
	// ReadOnly: nothing is created and tried.
	ReadOnly bool
	Secrets  Secrets
	Clock    clock.Clock

	// Objects are those of the bucket, whose requests go by AskOnce.
	Objects Objects
	// Head asks whether the bucket is there, and Make creates it. It is no error if another was first.
	Head, Make func(ctx context.Context) error
	// Meaning is what an error means, and Reply the service's reply that it comes from, or nil.
	Meaning func(err error) Meaning
	Reply   func(err error) *http.Response
	// SentHeader has the date that a request was signed with, in the form SentForm.
	SentHeader, SentForm string

	// Rows are checks of the bucket's settings.
	Rows []Check
	// Grant says how to grant what a check is denied.
	Grant func(check string) string
	// Heeds says which services heed If-None-Match.
	Heeds string
	// Noted is why the deletion of what isn't there is none to be tried; empty if it is. Optional.
	Noted func() string

	Durability store.Durability
	Script     string
}

// Bucket is a ledger of objects in a service over HTTP that stores one unless its name is taken, such as Amazon's S3. It takes time
// from the Date of replies, dates requests by it, and refuses a service that stores two objects under one name.
type Bucket struct {
	*ObjectLedger

	o      BucketOptions
	dating *Dating
	checks *Checks
	// proved says that the service keeps two objects from having one name.
	proved atomic.Bool
}

var _ store.Described = (*Bucket)(nil)

// OnBucket returns a ledger. It sends nothing.
func OnBucket(o BucketOptions) *Bucket {
	b := &Bucket{o: o, dating: NewDating(o.Clock)}
	fitness := NewFitness(o.Clock, b.fit)
	runner := NewRunner(RunnerOptions{Store: o.Store, Secrets: o.Secrets, Meaning: o.Meaning, Fitness: fitness})
	b.ObjectLedger = OnObjects(ObjectsOptions{Objects: o.Objects, Runner: runner, Folder: o.Folder, Create: b.create, Fitness: fitness})
	b.checks = &Checks{Runner: runner, Clock: o.Clock, Rows: b.rows()}
	return b
}

// String names the bucket and the folder.
func (b *Bucket) String() string { return b.o.URI }

// Describe says what the ledger knows of its store. See [store.Described].
func (b *Bucket) Describe() store.Description {
	return store.Description{
		FailoverFloor: b.FailoverFloor(), Durability: b.Durability, Warning: b.Warning, InitScript: b.InitScript, Examine: b.Examine,
	}
}

// FailoverFloor is 9.2 s with a skew of 250 ms: time comes from dates of whole seconds.
func (b *Bucket) FailoverFloor() time.Duration { return Dates{Skew: b.o.Skew}.FailoverFloor() }

// Durability is what the service's provider promises.
func (b *Bucket) Durability() store.Durability { return b.o.Durability }

// Warning is what somebody should see to, as of the newest check of the bucket's settings.
func (b *Bucket) Warning() string { return b.checks.Warning() }

// InitScript returns what Init does as commands, and the rights of a worker.
func (b *Bucket) InitScript() string { return b.o.Script }

// Examine asks for the bucket and its settings, and tries the rights: by a conditional put of an object that exists, and by the
// deletion of what doesn't, unless that would be noted. It stores nothing. It costs about twelve requests.
func (b *Bucket) Examine(ctx context.Context) ([]store.Finding, error) { return b.checks.Examine(ctx) }

// create creates the bucket unless it exists, or can't be seen.
func (b *Bucket) create(ctx context.Context) error {
	if b.o.ReadOnly {
		return nil
	}
	err := b.o.Head(ctx)
	if err == nil || !errors.Is(b.o.Meaning(err).Is, store.ErrMissing) {
		return err
	}
	return b.o.Make(ctx)
}

// fit finds out whether the bucket can keep a ledger. Whether the service heeds If-None-Match is tried once for each handle. Who
// may not write finds that out by no other way, and can't append either.
func (b *Bucket) fit(ctx context.Context) error {
	if err := b.checks.Fit(ctx); err != nil || b.o.ReadOnly || b.proved.Load() {
		return err
	}
	stored := 0
	for n := 1; stored < 2; n++ {
		err := b.o.Objects.Create(ctx, b.o.Folder+probeName, []byte(`{}`))
		is := err
		if m := b.o.Meaning(err); m.Is != nil {
			is = m.Is
		}
		switch {
		case err == nil:
			stored++
		case errors.Is(is, store.ErrConflict):
			b.proved.Store(true)
			return nil
		case errors.Is(is, store.ErrDenied):
			return nil
		case errors.Is(is, store.ErrRefused), n == mostProbes, !Pause(ctx, b.o.Clock, time.Duration(n)*probePause):
			return err
		}
	}
	return b.ignorant().Refuse()
}

func (b *Bucket) ignorant() Flaw {
	return Flaw{
		Check: CheckCondition, Level: store.LevelFail, Remedy: b.o.Heeds,
		What: "the service ignores If-None-Match: it stored two objects under one name, one in place of the other",
	}
}

// rows is the table of checks.
func (b *Bucket) rows() []Check {
	o := b.o
	right := func(name string, level store.Level, ask func(ctx context.Context) (string, error)) Check {
		return Check{Name: name, Level: level, Ask: ask, Grant: o.Grant(name)}
	}
	deletion := func(name string) func(ctx context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			if o.Noted != nil && o.Noted() != "" {
				return "", Skip(o.Noted())
			}
			_, err := o.Objects.Delete(ctx, o.Folder+name)
			return "granted, by the deletion of what isn't there", err
		}
	}
	connection := func(ctx context.Context) (string, error) {
		err := o.Head(ctx)
		if err != nil && o.Reply(err) != nil {
			err = nil
		}
		return o.Service + " answered", err
	}
	there := func(ctx context.Context) (string, error) {
		err := o.Head(ctx)
		if err != nil && errors.Is(o.Meaning(err).Is, store.ErrMissing) {
			return Found("", Flaw{Check: store.CheckLedger, What: o.Meaning(err).Text, Remedy: "leasectl init"})
		}
		return "the " + o.Kind + " " + o.Name + " is there", err
	}
	rows := []Check{
		{Name: store.CheckConnection, Level: store.LevelFail, Ask: connection, Needed: "no connection"},
		Secured(o.Endpoint),
		Assumed(o.Skew, "the servers can't be asked one by one"),
		{Name: store.CheckLedger, Level: store.LevelFail, Ask: there, Grant: o.Grant(store.CheckLedger), Needed: "the " + o.Kind + " can't be used"},
	}
	return append(append(rows, o.Rows...),
		right(store.CheckRead, store.LevelFail, b.read),
		Check{Name: CheckCondition, Level: store.LevelFail, Ask: b.condition},
		right(store.CheckAppend, store.LevelFail, b.put),
		right(store.CheckTrim, store.LevelWarn, deletion(recordFolder+"-none")),
		right(store.CheckRoster, store.LevelWarn, deletion(presenceFolder+"-none")),
	)
}

// read lists and reads as workers do.
func (b *Bucket) read(ctx context.Context) (string, error) {
	found := false
	err := b.o.Objects.List(ctx, b.o.Folder+probeName, "", 1, func(Object) bool { found = true; return false })
	if err == nil && found {
		_, err = b.o.Objects.Read(ctx, b.o.Folder+probeName)
	}
	return "lists and reads are granted", err
}

// again puts the object that is there already, which stores nothing, unless the service ignores the condition.
func (b *Bucket) again(ctx context.Context) error {
	if _, err := b.o.Objects.Read(ctx, b.o.Folder+probeName); err != nil {
		return Skip("it is tried by the object " + b.o.Folder + probeName + ", which isn't there yet, or can't be read")
	}
	err := b.o.Objects.Create(ctx, b.o.Folder+probeName, []byte(`{}`))
	if err != nil && (errors.Is(err, store.ErrConflict) || errors.Is(b.o.Meaning(err).Is, store.ErrConflict)) {
		return store.ErrConflict
	}
	return err
}

func (b *Bucket) condition(ctx context.Context) (string, error) {
	err := b.again(ctx)
	switch {
	case err == nil:
		return Found("", b.ignorant())
	case errors.Is(err, store.ErrConflict):
		return "the service heeds If-None-Match", nil
	case errors.Is(b.o.Meaning(err).Is, store.ErrDenied):
		return "", Skip("it could not be tried")
	}
	return "", err
}

func (b *Bucket) put(ctx context.Context) (string, error) {
	err := b.again(ctx)
	if errors.Is(err, store.ErrConflict) {
		err = nil
	}
	return "granted, by a put of an object that exists", err
}

// Date is the service's time, as well as it is known, with which requests are to be dated.
func (b *Bucket) Date() time.Time { return b.dating.Now().UTC() }

// Hear takes the service's time from a reply that has just arrived, and bounds the reply.
func (b *Bucket) Hear(ctx context.Context, reply *http.Response) {
	b.dating.Learn(reply)
	Note(ctx, Dates{Skew: b.o.Skew, Server: reply.Request.URL.Host}.Stamp(reply))
	reply.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(reply.Body, maxReply), reply.Body}
}

// AskOnce sends a request, and once more if it was refused for its date: by the reply the next one has a better.
func AskOnce[T any](b *Bucket, send func() (T, error)) (T, error) {
	v, err := send()
	if err != nil && b.misdated(b.o.Reply(err)) {
		v, err = send()
	}
	return v, err
}

// misdated reports whether a request may have been refused for its date.
func (b *Bucket) misdated(reply *http.Response) bool {
	if reply == nil || reply.Request == nil || reply.StatusCode != http.StatusForbidden && reply.StatusCode != http.StatusBadRequest {
		return false
	}
	sent, err := time.Parse(b.o.SentForm, reply.Request.Header.Get(b.o.SentHeader))
	return err == nil && b.dating.Misdated(sent, reply)
}

// Pause waits, and reports whether there was time for it.
func Pause(ctx context.Context, c clock.Clock, d time.Duration) bool {
	timer := c.Timer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// RetryAfter is the wait that a reply names, in whole seconds; 0 if it names none.
func RetryAfter(reply *http.Response) time.Duration {
	if reply == nil {
		return 0
	}
	n, err := strconv.Atoi(reply.Header.Get("Retry-After"))
	if err != nil || n < 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}
