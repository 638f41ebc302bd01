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

// dry lets a request store nothing.
var dry = url.Values{"dryRun": {"All"}}

// rows is the table of checks.
func (c *cluster) rows() []storekit.Check {
	right := func(name string, level store.Level, verb, granted string, try func(ctx context.Context) error) storekit.Check {
		return storekit.Check{
			Name: name, Level: level, Ask: func(ctx context.Context) (string, error) { return granted, try(ctx) },
			Grant: fmt.Sprintf("grant %s on configmaps in the namespace %s, as in store/kubernetes/rbac.yaml", verb, c.namespace),
		}
	}
	clocks := storekit.Assumed(c.skew, "API servers can't be asked one by one")
	if c.skew == 0 {
		clocks.Ask = func(context.Context) (string, error) {
			return "", storekit.Skip("not measured: assumed to be one, because oneServer says so")
		}
	}
	return []storekit.Check{
		{Name: store.CheckConnection, Level: store.LevelFail, Ask: c.version, Needed: "no connection"},
		{Name: store.CheckTLS, Level: store.LevelWarn, Ask: c.secured, Alone: true},
		clocks,
		{Name: store.CheckLedger, Level: store.LevelFail, Ask: c.judgeNamespace},
		{Name: store.CheckExpiry, Level: store.LevelFail, Ask: c.judgeExpiry},
		{Name: CheckOrder, Level: store.LevelFail, Ask: c.judgeOrder},
		{Name: CheckQuota, Level: store.LevelWarn, Ask: c.judgeQuota},
		{Name: store.CheckConstraints, Level: store.LevelFail, Ask: c.judgeAdmission},
		right(store.CheckRead, store.LevelFail, "get and list", "get and list are granted", c.tryRead),
		right(store.CheckAppend, store.LevelFail, "create", "granted, by a dry run", func(ctx context.Context) error {
			_, err := c.tryCreate(ctx)
			return err
		}),
		right(store.CheckTrim, store.LevelWarn, "delete", "granted, by a dry run", func(ctx context.Context) error {
			return missing(c.do(ctx, request{method: http.MethodDelete, path: c.path(parse(probe).name()), query: dry}, nil))
		}),
		right(store.CheckRoster, store.LevelWarn, "update", "granted, by a dry run", func(ctx context.Context) error {
			sent := made(probePresence, []byte("{}"))
			return missing(c.do(ctx, request{method: http.MethodPut, path: c.path(sent.Metadata.Name), query: dry, body: sent}, nil))
		}),
	}
}

// version asks for the server's version.
func (c *cluster) version(ctx context.Context) (string, error) {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	err := c.do(ctx, request{method: http.MethodGet, path: "/version"}, &version)
	return fmt.Sprintf("the API server at %s, %s, answered", c.host, version.GitVersion), err
}

// secured says how the connection is secured.
func (c *cluster) secured(context.Context) (string, error) {
	switch {
	case strings.HasPrefix(c.base, "http:"):
		return storekit.Found("", storekit.Flaw{Check: store.CheckTLS, What: "not encrypted", Remedy: "use https in the kubeconfig"})
	case !c.verified:
		return storekit.Found("", storekit.Flaw{Check: store.CheckTLS, What: "encrypted, and the server's certificate isn't verified", Remedy: "give certificate-authority in place of insecure-skip-tls-verify"})
	}
	return "encrypted, and the server's certificate is verified", nil
}

func (c *cluster) judgeNamespace(ctx context.Context) (string, error) {
	_, err := c.readNamespace(ctx)
	switch m := meaning(err); {
	case err != nil && errors.Is(m.Is, store.ErrMissing):
		return storekit.Found("", storekit.Flaw{Check: store.CheckLedger, What: "there is no namespace " + c.namespace, Remedy: "kubectl create namespace " + c.namespace})
	case err != nil && errors.Is(m.Is, store.ErrDenied):
		return "", storekit.Skip("no right to read the namespace, which workers don't need")
	}
	return "the namespace " + c.namespace + " is there", err
}

// look lists the newest records, and returns the flaw that it meets, if any.
func (c *cluster) look(ctx context.Context) ([]storekit.Flaw, error) {
	seen := 0
	err := c.List(ctx, recordFolder, "", 0, func(storekit.Object) bool { seen++; return seen < mostNames })
	if flaw, unfit := errors.AsType[storekit.Flaw](err); unfit {
		return []storekit.Flaw{flaw}, nil
	}
	if err != nil {
		return nil, storekit.Skip("the records can't be listed")
	}
	return nil, nil
}

func (c *cluster) judgeExpiry(ctx context.Context) (string, error) {
	flaws, err := c.look(ctx)
	if err != nil {
		return "", err
	}
	if n, err := c.readNamespace(ctx); err == nil {
		flaws = append(n.flaws(c.namespace), flaws...)
	}
	return storekit.Found("none of the records looked at belongs to something that it is deleted with", of(store.CheckExpiry, flaws)...)
}

func (c *cluster) judgeOrder(ctx context.Context) (string, error) {
	flaws, err := c.look(ctx)
	if err != nil {
		return "", err
	}
	return storekit.Found("lists are in the order of names", of(CheckOrder, flaws)...)
}

// of are the flaws of a check.
func of(check string, all []storekit.Flaw) (some []storekit.Flaw) {
	for _, f := range all {
		if f.Check == check {
			some = append(some, f)
		}
	}
	return some
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

// judgeQuota looks for quotas of ConfigMaps.
func (c *cluster) judgeQuota(ctx context.Context) (string, error) {
	var found quotas
	err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/namespaces/" + url.PathEscape(c.namespace) + "/resourcequotas"}, &found)
	if err != nil && errors.Is(meaning(err).Is, store.ErrDenied) {
		return "", storekit.Skip("no right to read the namespace's quotas, which workers don't need")
	}
	if err != nil {
		return "", err
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
	return storekit.Found("no quota limits ConfigMaps", flaws...)
}

// judgeAdmission compares what would be stored with what was sent.
func (c *cluster) judgeAdmission(ctx context.Context) (string, error) {
	flaws, err := c.tryCreate(ctx)
	if err != nil {
		return "", storekit.Skip("nothing can be created")
	}
	return storekit.Found("what is stored is what was sent, by a dry run", flaws...)
}

// tryCreate asks for a record without storing it, and returns what is wrong with what would have been stored.
func (c *cluster) tryCreate(ctx context.Context) ([]storekit.Flaw, error) {
	sent := made(probe, []byte("{}"))
	var stored configMap
	err := c.do(ctx, request{method: http.MethodPost, path: c.path(""), query: dry, body: sent}, &stored)
	if flaw := changed(sent, stored); err == nil && flaw != nil {
		return []storekit.Flaw{*flaw}, nil
	}
	return nil, err
}

// tryRead gets and lists as workers do.
func (c *cluster) tryRead(ctx context.Context) error {
	if _, err := c.Read(ctx, probe); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return c.List(ctx, recordFolder+"-/", "", 1, func(storekit.Object) bool { return false })
}

// missing takes the lack of an object for the success of what was asked.
func missing(err error) error {
	if s, ok := errors.AsType[*statusError](err); ok && s.code == http.StatusNotFound && s.kind != "namespaces" {
		return nil
	}
	return err
}
