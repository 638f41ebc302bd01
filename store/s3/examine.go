package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Examiner = (*Ledger)(nil)

// Examine asks for the bucket, its lifecycle rules and its versioning, and tries the rights of the credentials: by a
// conditional put of an object that exists, and by the deletion of what doesn't, unless versioning would note that.
// It stores nothing. It costs about eight requests.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	e := &storekit.Exam{Clock: l.clock, Scrub: func(text string) string { return l.secrets.Scrub(text) }}
	if l.runner.Closed() {
		return nil, l.runner.Invalid("examine", store.ErrClosed)
	}
	l.examine(ctx, e)
	return e.Found, nil
}

func (l *Ledger) examine(ctx context.Context, e *storekit.Exam) {
	missing := l.examineConnection(ctx, e)
	l.examineTLS(e)
	e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew): the servers can't be asked one by one", l.skew))
	if missing != "" {
		e.Skip(missing, store.CheckExpiry, CheckVersions, CheckCondition, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster)
		return
	}
	versioned := l.examineBucket(ctx, e)
	l.examineRights(ctx, e, versioned)
}

// try sends a request of an examination, within its part of the time. The error is as it may be shown.
func try[T any](ctx context.Context, l *Ledger, e *storekit.Exam, send func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	return storekit.Probe(ctx, l.runner, send)
}

// examineConnection returns why the rest can't be examined, or nothing.
func (l *Ledger) examineConnection(ctx context.Context, e *storekit.Exam) (why string) {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := l.clock.Now()
	_, err := storekit.Probe(ctx, l.runner, l.head)
	if err != nil && statusOf(err) == 0 {
		e.Failed(store.CheckConnection, store.LevelFail, err)
		e.Skip("no connection", store.CheckLedger)
		return "no connection"
	}
	e.OK(store.CheckConnection, fmt.Sprintf("the service answered in %v", e.Since(began)))
	switch {
	case errors.Is(err, store.ErrMissing):
		e.Add(storekit.Flaw{Check: store.CheckLedger, What: err.Error(), Remedy: "leasectl init"}.Finding(store.LevelFail))
		return "there is no bucket"
	case err != nil:
		f := store.Finding{Check: store.CheckLedger, Level: store.LevelFail, Text: err.Error(), Err: err}
		if errors.Is(err, store.ErrDenied) {
			f.Remedy = "grant s3:ListBucket on the bucket, or use other credentials"
		}
		e.Add(f)
		return "the bucket can't be used"
	}
	e.OK(store.CheckLedger, "the bucket "+l.address.bucket+" is there")
	return ""
}

// examineTLS says how the connection is secured.
func (l *Ledger) examineTLS(e *storekit.Exam) {
	switch u := l.address.endpoint; {
	case u == nil || u.Scheme == "https":
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	case storekit.Plain(u):
		e.Add(store.Finding{Check: store.CheckTLS, Level: store.LevelWarn, Text: "not encrypted (insecureHTTP): records can be read and changed on the way", Remedy: "use an endpoint with https"})
	default:
		e.OK(store.CheckTLS, "not encrypted, to this machine alone")
	}
}

// examineBucket judges what the bucket does with objects, and reports whether it keeps versions, or may.
func (l *Ledger) examineBucket(ctx context.Context, e *storekit.Exam) (versioned bool) {
	found, err := try(ctx, l, e, l.inspect)
	if err != nil {
		e.Failed(store.CheckExpiry, store.LevelWarn, err)
		e.Skip("the bucket doesn't say", CheckVersions)
		return true
	}
	if len(found.unfit) > 0 {
		e.Flaws(store.CheckExpiry, store.LevelFail, found.unfit, "")
	} else {
		e.Flaws(store.CheckExpiry, store.LevelWarn, found.lesser, "no lifecycle rule deletes records, or moves them")
	}
	e.Flaws(CheckVersions, store.LevelWarn, found.lesser, "what is trimmed is gone, now or by a lifecycle rule")
	return found.versioned
}

// examineRights tries what workers do, so that nothing is stored.
func (l *Ledger) examineRights(ctx context.Context, e *storekit.Exam, versioned bool) {
	judge := func(check string, level store.Level, err error, granted, remedy string) {
		switch {
		case err == nil:
			e.OK(check, granted)
		case errors.Is(err, store.ErrDenied):
			e.Add(store.Finding{Check: check, Level: level, Text: err.Error(), Remedy: remedy, Err: err})
		default:
			e.Failed(check, level, err)
		}
	}
	arn := "arn:aws:s3:::" + l.address.bucket + "/" + l.address.folder
	probe := l.address.folder + probeName
	there, err := try(ctx, l, e, func(ctx context.Context) (bool, error) {
		found := false
		err := objects{l}.List(ctx, probe, "", 1, func(storekit.Object) bool { found = true; return false })
		if err == nil && found {
			_, err = objects{l}.Read(ctx, probe)
		}
		return found, err
	})
	judge(store.CheckRead, store.LevelFail, err, "lists and reads are granted", "grant s3:ListBucket on the bucket, and s3:GetObject on "+arn+"*")
	if there {
		ignored, err := try(ctx, l, e, func(ctx context.Context) (bool, error) {
			err := objects{l}.put(ctx, probe, []byte(`{}`), aws.String("*"))
			if statusOf(err) == http.StatusPreconditionFailed {
				return false, nil
			}
			return err == nil, err
		})
		switch {
		case ignored:
			e.Add(ignorant("ignores If-None-Match").Finding(store.LevelFail))
		case err == nil:
			e.OK(CheckCondition, "the service heeds If-None-Match")
		default:
			e.Skip("it could not be tried", CheckCondition)
		}
		judge(store.CheckAppend, store.LevelFail, err, "granted, by a put of an object that exists", "grant s3:PutObject on "+arn+"*")
	} else {
		e.Skip("they are tried by the object "+probe+", which isn't there yet", CheckCondition, store.CheckAppend)
	}
	if versioned {
		e.Skip("the deletion of what isn't there would be noted in a bucket with versioning", store.CheckTrim, store.CheckRoster)
		return
	}
	for _, c := range []struct{ check, name string }{{store.CheckTrim, "ledger/-none"}, {store.CheckRoster, "roster/-none"}} {
		_, err = try(ctx, l, e, func(ctx context.Context) (bool, error) { return objects{l}.Delete(ctx, l.address.folder+c.name) })
		judge(c.check, store.LevelWarn, err, "granted, by the deletion of what isn't there", "grant s3:DeleteObject on "+arn+"*, and s3:PutObject for the roster")
	}
}
