package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckQuota: no quota of the namespace keeps records out.
	CheckQuota = "quota"
	// CheckOrder: lists are in the order of names.
	CheckOrder = "order"
)

const (
	// probe is the record that is tried. Nothing is ever stored at it: no worker type begins with a hyphen.
	probe = recordFolder + "-/0000000000000000"
	// probePresence is the presence.
	probePresence = presenceFolder + "-/-"
)

// tryCreate asks for a record without storing it.
func (c *cluster) tryCreate(ctx context.Context) error {
	sent := made(probe, []byte("{}"))
	var stored configMap
	if err := c.do(ctx, request{method: http.MethodPost, path: c.path(""), query: url.Values{"dryRun": {"All"}}, body: sent}, &stored); err != nil {
		return err
	}
	if flaw := changed(sent, stored); flaw != nil {
		return flaw.Refuse()
	}
	return nil
}

// Examine reads the namespace, its quotas and its records, and tries the rights by dry runs. It stores nothing.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	c := l.c
	if c.runner.Closed() {
		return nil, c.runner.Invalid("examine", store.ErrClosed)
	}
	e := &storekit.Exam{Clock: c.clock, Scrub: func(text string) string { return c.secrets.Scrub(text) }}
	err := c.examineConnection(ctx, e)
	c.examineTLS(e)
	if err != nil {
		e.Skip("no connection", store.CheckLedger, store.CheckExpiry, CheckOrder, CheckQuota, store.CheckConstraints, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster, store.CheckServerClocks)
		return e.Found, nil
	}
	terminating := c.examineNamespace(ctx, e)
	c.examineRecords(ctx, e, terminating)
	c.examineQuota(ctx, e)
	c.examineRights(ctx, e)
	if c.skew == 0 {
		e.OK(store.CheckServerClocks, "there is one API server, with one clock, as is assumed (oneServer)")
	} else {
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew): API servers can't be asked one by one", c.skew))
	}
	return e.Found, nil
}

// try runs a step of an examination, on a namespace that may be unfit.
func (c *cluster) try(ctx context.Context, do func(ctx context.Context) error) error {
	_, err := storekit.RunUnchecked(ctx, c.runner, "examine", "", func(ctx context.Context) (none struct{}, err error) { return none, do(ctx) })
	if err != nil {
		err = errors.Unwrap(err) // without the name of the operation
	}
	return err
}

// examineConnection asks for the version.
func (c *cluster) examineConnection(ctx context.Context, e *storekit.Exam) error {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := c.clock.Now()
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	err := c.try(ctx, func(ctx context.Context) error {
		return c.do(ctx, request{method: http.MethodGet, path: "/version"}, &version)
	})
	if err != nil {
		e.Failed(store.CheckConnection, store.LevelFail, err)
		return err
	}
	e.OK(store.CheckConnection, fmt.Sprintf("the API server at %s answered in %v, %s", c.host, e.Since(began), version.GitVersion))
	return nil
}

// examineTLS says how the connection is secured.
func (c *cluster) examineTLS(e *storekit.Exam) {
	switch {
	case strings.HasPrefix(c.base, "http:"):
		e.Add(storekit.Flaw{Check: store.CheckTLS, What: "not encrypted", Remedy: "use https in the kubeconfig"}.Finding(store.LevelWarn))
	case !c.verified:
		e.Add(storekit.Flaw{Check: store.CheckTLS, What: "encrypted, and the server's certificate isn't verified", Remedy: "give certificate-authority in place of insecure-skip-tls-verify"}.Finding(store.LevelWarn))
	default:
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	}
}

// examineNamespace judges the namespace, and reports its flaw.
func (c *cluster) examineNamespace(ctx context.Context, e *storekit.Exam) *storekit.Flaw {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	var n namespace
	err := c.try(ctx, func(ctx context.Context) (err error) { n, err = c.readNamespace(ctx); return err })
	switch {
	case errors.Is(err, store.ErrMissing):
		e.Add(storekit.Flaw{Check: store.CheckLedger, What: "there is no namespace " + c.namespace, Remedy: "kubectl create namespace " + c.namespace}.Finding(store.LevelFail))
	case errors.Is(err, store.ErrDenied):
		e.Skip("no right to read the namespace, which workers don't need", store.CheckLedger)
	case err != nil:
		e.Failed(store.CheckLedger, store.LevelFail, err)
	default:
		e.OK(store.CheckLedger, "the namespace "+c.namespace+" is there")
		return n.flaw(c.namespace)
	}
	return nil
}

// examineRecords lists the newest records.
func (c *cluster) examineRecords(ctx context.Context, e *storekit.Exam, terminating *storekit.Flaw) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	err := c.try(ctx, func(ctx context.Context) error {
		seen := 0
		return c.List(ctx, recordFolder, "", 0, func(storekit.Object) bool { seen++; return seen < mostNames })
	})
	flaw, unfit := errors.AsType[storekit.Flaw](err)
	var expiry []storekit.Flaw
	if terminating != nil {
		expiry = append(expiry, *terminating)
	}
	if unfit {
		expiry = append(expiry, flaw)
	}
	switch {
	case err != nil && !unfit:
		e.Skip("the records can't be listed", store.CheckExpiry, CheckOrder)
		return
	case unfit && flaw.Check == CheckOrder:
		e.Add(flaw.Finding(store.LevelFail))
	default:
		e.OK(CheckOrder, "lists are in the order of names")
	}
	e.Flaws(store.CheckExpiry, store.LevelFail, expiry, "none of the records looked at belongs to something that it is deleted with")
}

// quotas are those of a namespace.
type quotas struct {
	Items []struct {
		Metadata metadata `json:"metadata"`
		Status   struct {
			Hard map[string]string `json:"hard"`
			Used map[string]string `json:"used"`
		} `json:"status"`
	} `json:"items"`
}

// examineQuota looks for quotas of ConfigMaps.
func (c *cluster) examineQuota(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	var found quotas
	err := c.try(ctx, func(ctx context.Context) error {
		return c.do(ctx, request{method: http.MethodGet, path: "/api/v1/namespaces/" + url.PathEscape(c.namespace) + "/resourcequotas"}, &found)
	})
	switch {
	case errors.Is(err, store.ErrDenied):
		e.Skip("no right to read the namespace's quotas, which workers don't need", CheckQuota)
		return
	case err != nil:
		e.Failed(CheckQuota, store.LevelWarn, err)
		return
	}
	var flaws []storekit.Flaw
	for _, q := range found.Items {
		for _, name := range []string{"count/configmaps", "configmaps"} {
			if hard := q.Status.Hard[name]; hard != "" {
				flaws = append(flaws, storekit.Flaw{
					Check: CheckQuota, What: fmt.Sprintf("the quota %.120s allows %.20s ConfigMaps, of which %.20s are there: beyond that nothing can be appended", q.Metadata.Name, hard, q.Status.Used[name]),
					Remedy: "give the ledger a namespace without such a quota",
				})
			}
		}
	}
	e.Flaws(CheckQuota, store.LevelWarn, flaws, "no quota limits ConfigMaps")
}

// examineRights tries what workers do, by dry runs.
func (c *cluster) examineRights(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	dry := url.Values{"dryRun": {"All"}}
	report := func(check string, level store.Level, verb, granted string, err error) {
		switch {
		case err == nil:
			e.OK(check, granted)
		case errors.Is(err, store.ErrDenied):
			f := storekit.Flaw{Check: check, What: err.Error(), Remedy: fmt.Sprintf("grant %s on configmaps in the namespace %s, as in store/kubernetes/rbac.yaml", verb, c.namespace)}
			e.Add(f.Finding(level))
		default:
			e.Failed(check, level, err)
		}
	}
	report(store.CheckRead, store.LevelFail, "get and list", "get and list are granted", c.try(ctx, func(ctx context.Context) error {
		if _, err := c.Read(ctx, probe); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return c.List(ctx, recordFolder+"-/", "", 1, func(storekit.Object) bool { return false })
	}))
	err := c.try(ctx, c.tryCreate)
	if flaw, unfit := errors.AsType[storekit.Flaw](err); unfit {
		e.Add(flaw.Finding(store.LevelFail))
		err = nil
	} else if err == nil {
		e.OK(store.CheckConstraints, "what is stored is what was sent, by a dry run")
	} else {
		e.Skip("nothing can be created", store.CheckConstraints)
	}
	report(store.CheckAppend, store.LevelFail, "create", "granted, by a dry run", err)
	missing := func(err error) error {
		if s, ok := errors.AsType[*statusError](err); ok && s.code == http.StatusNotFound && s.kind != "namespaces" {
			return nil
		}
		return err
	}
	report(store.CheckTrim, store.LevelWarn, "delete", "granted, by a dry run", c.try(ctx, func(ctx context.Context) error {
		return missing(c.do(ctx, request{method: http.MethodDelete, path: c.path(parse(probe).name()), query: dry}, nil))
	}))
	report(store.CheckRoster, store.LevelWarn, "update", "granted, by a dry run", c.try(ctx, func(ctx context.Context) error {
		sent := made(probePresence, []byte("{}"))
		return missing(c.do(ctx, request{method: http.MethodPut, path: c.path(sent.Metadata.Name), query: dry, body: sent}, nil))
	}))
}
