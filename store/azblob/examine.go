package azblob

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Examiner = (*Ledger)(nil)

// Examine asks for the container and the account, and tries the rights of the key or identity: by a conditional put of
// a blob that exists, and by the deletion of what doesn't. It stores nothing. It costs about eight requests.
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
	switch u := l.address.service; {
	case u.Scheme == "https":
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	case storekit.Plain(u):
		e.Add(store.Finding{Check: store.CheckTLS, Level: store.LevelWarn, Text: "not encrypted (insecureHTTP): records can be read and changed on the way", Remedy: "use an endpoint with https"})
	default:
		e.OK(store.CheckTLS, "not encrypted, to this machine alone")
	}
	e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew): the servers can't be asked one by one", l.skew))
	e.Skip("lifecycle policies belong to the management of the account, which can't be asked with this login: none may delete blobs of this container, or move them to the archive tier", store.CheckExpiry)
	if missing != "" {
		e.Skip(missing, CheckRegions, CheckImmutability, CheckCondition, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster)
		return
	}
	if flaws, err := try(ctx, l, e, l.inspect); err != nil {
		e.Failed(CheckRegions, store.LevelWarn, err)
		e.Skip("the container doesn't say", CheckImmutability)
	} else {
		e.Flaws(CheckRegions, store.LevelWarn, flaws, "no copy in another region may take over, as far as the account says")
		e.Flaws(CheckImmutability, store.LevelWarn, flaws, "no policy of the container keeps records, as far as it says")
	}
	l.examineRights(ctx, e)
}

// examineConnection returns why the rest can't be examined, or nothing.
func (l *Ledger) examineConnection(ctx context.Context, e *storekit.Exam) (why string) {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := l.clock.Now()
	_, err := storekit.Probe(ctx, l.runner, func(ctx context.Context) (none struct{}, err error) { return none, l.look(ctx) })
	if err != nil && statusOf(err) == 0 {
		e.Failed(store.CheckConnection, store.LevelFail, err)
		e.Skip("no connection", store.CheckLedger)
		return "no connection"
	}
	e.OK(store.CheckConnection, fmt.Sprintf("the account %s answered in %v", l.address.account, e.Since(began)))
	switch {
	case errors.Is(err, store.ErrMissing):
		e.Add(storekit.Flaw{Check: store.CheckLedger, What: err.Error(), Remedy: "leasectl init"}.Finding(store.LevelFail))
		return "there is no container"
	case err != nil:
		f := store.Finding{Check: store.CheckLedger, Level: store.LevelFail, Text: err.Error(), Err: err}
		if errors.Is(err, store.ErrDenied) {
			f.Remedy = "use another key, or grant the role Storage Blob Data Contributor on the container"
		}
		e.Add(f)
		return "the container can't be used"
	}
	e.OK(store.CheckLedger, "the container "+l.address.container+" is there")
	return ""
}

// try sends a request of an examination, within its part of the time. The error is as it may be shown.
func try[T any](ctx context.Context, l *Ledger, e *storekit.Exam, send func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	return storekit.Probe(ctx, l.runner, send)
}

// examineRights tries what workers do, so that nothing is stored.
func (l *Ledger) examineRights(ctx context.Context, e *storekit.Exam) {
	judge := func(check string, level store.Level, err error, granted string) {
		switch {
		case err == nil:
			e.OK(check, granted)
		case errors.Is(err, store.ErrDenied):
			e.Add(store.Finding{Check: check, Level: level, Text: err.Error(), Remedy: "grant the role Storage Blob Data Contributor on the container, or a shared access signature with racwdl", Err: err})
		default:
			e.Failed(check, level, err)
		}
	}
	probe := l.address.folder + probeName
	there, err := try(ctx, l, e, func(ctx context.Context) (found bool, err error) {
		err = objects{l}.List(ctx, probe, "", 1, func(storekit.Object) bool { found = true; return false })
		if err == nil && found {
			_, err = objects{l}.Read(ctx, probe)
		}
		return found, err
	})
	judge(store.CheckRead, store.LevelFail, err, "lists and reads are granted")
	if there {
		ignored, err := try(ctx, l, e, func(ctx context.Context) (bool, error) {
			err := objects{l}.put(ctx, probe, []byte(`{}`), to.Ptr(azcore.ETagAny))
			if err != nil && errors.Is(l.meaning(err).Is, store.ErrConflict) {
				return false, nil
			}
			return err == nil, err
		})
		switch {
		case ignored:
			e.Add(ignorant().Finding(store.LevelFail))
		case err == nil:
			e.OK(CheckCondition, "the service heeds If-None-Match")
		default:
			e.Skip("it could not be tried", CheckCondition)
		}
		judge(store.CheckAppend, store.LevelFail, err, "granted, by a put of a blob that exists")
	} else {
		e.Skip("they are tried by the blob "+probe+", which isn't there yet", CheckCondition, store.CheckAppend)
	}
	for _, c := range []struct{ check, name string }{{store.CheckTrim, "ledger/-none"}, {store.CheckRoster, "roster/-none"}} {
		_, err = try(ctx, l, e, func(ctx context.Context) (bool, error) { return objects{l}.Delete(ctx, l.address.folder+c.name) })
		judge(c.check, store.LevelWarn, err, "granted, by the deletion of what isn't there")
	}
}
