package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// mostValues is how many objects a list asks for at once, and mostNames how many without their content.
	mostValues = 200
	mostNames  = 1000
	// mostTypes is how many worker types a selector leaves out, and fewNames how many objects a list asks for that looks for
	// the next one.
	mostTypes = 50
	fewNames  = 100
	// content is the key of the content in an object's data.
	content = "json"
	// mostReplaces is how often a presence that comes and goes is stored.
	mostReplaces = 5
)

var (
	_ storekit.Objects = (*cluster)(nil)
	_ storekit.Folders = (*cluster)(nil)
)

// made is the object to be stored.
func made(name string, body []byte) configMap {
	o := parse(name)
	m := configMap{
		APIVersion: "v1", Kind: "ConfigMap", Metadata: metadata{Name: o.name(), Labels: o.labels(), Annotations: o.annotations()},
		Data: map[string]string{content: string(body)},
	}
	if o.kind == kindRecord {
		yes := true
		m.Immutable = &yes
	}
	return m
}

// Create creates an object unless there is one of that name. What the API server says that it has stored is compared,
// since admission may have changed it.
func (c *cluster) Create(ctx context.Context, name string, body []byte) error {
	sent := made(name, body)
	var stored configMap
	if err := c.do(ctx, request{method: http.MethodPost, path: c.path(""), body: sent}, &stored); err != nil {
		if s, ok := errors.AsType[*statusError](err); ok && s.code == http.StatusConflict && s.reason == reasonExists {
			return store.ErrConflict
		}
		return err
	}
	if flaw := changed(sent, stored); flaw != nil {
		return flaw.Refuse()
	}
	return nil
}

// Replace stores a presence in place of the one of that name, if there is one.
func (c *cluster) Replace(ctx context.Context, name string, body []byte) error {
	sent := made(name, body)
	for n := 1; ; n++ {
		err := c.do(ctx, request{method: http.MethodPut, path: c.path(sent.Metadata.Name), body: sent}, nil)
		if s, ok := errors.AsType[*statusError](err); ok && s.code == http.StatusNotFound {
			err = c.do(ctx, request{method: http.MethodPost, path: c.path(""), body: sent}, nil)
		}
		if s, ok := errors.AsType[*statusError](err); !ok || s.code != http.StatusConflict || n == mostReplaces {
			return err
		}
	}
}

// Read gets an object, without a resource version, which Kubernetes calls the most recent.
func (c *cluster) Read(ctx context.Context, name string) ([]byte, error) {
	var m configMap
	if err := c.do(ctx, request{method: http.MethodGet, path: c.path(parse(name).name())}, &m); err != nil {
		if s, ok := errors.AsType[*statusError](err); ok && s.code == http.StatusNotFound {
			return nil, store.ErrNotFound
		}
		return nil, err
	}
	if flaw := owned(parse(name).kind, m.Metadata); flaw != nil {
		return nil, flaw.Refuse()
	}
	return []byte(m.Data[content]), nil
}

// List lists the objects of a worker type, or of a kind, by their labels, without a resource version, which Kubernetes
// calls the most recent. It can't begin at a name, and passes over what comes before.
func (c *cluster) List(ctx context.Context, prefix, after string, hint int, visit func(o storekit.Object) bool) error {
	wanted := parse(prefix)
	r := request{method: http.MethodGet, path: c.path(""), query: url.Values{"labelSelector": {wanted.selector()}, "limit": {strconv.Itoa(storekit.Piece(0, 0, min(hint, mostValues)))}}}
	if hint <= 0 || after != "" {
		r.metadata = hint <= 0
		r.query.Set("limit", strconv.Itoa(map[bool]int{true: mostNames, false: storekit.Piece(0, 0, mostValues)}[r.metadata]))
	}
	last := ""
	for {
		var page list
		if err := c.do(ctx, r, &page); err != nil {
			return err
		}
		for _, item := range page.Items {
			if item.Metadata.Name <= last {
				return unordered().Refuse()
			}
			last = item.Metadata.Name
			o, ok := identify(wanted.kind, item.Metadata)
			if !ok || wanted.workerType != "" && o.workerType != wanted.workerType || o.String() <= after {
				continue
			}
			if flaw := owned(wanted.kind, item.Metadata); flaw != nil {
				return flaw.Refuse()
			}
			found := storekit.Object{Name: o.String()}
			if !r.metadata {
				found.Body = []byte(item.Data[content])
			}
			if !visit(found) {
				return nil
			}
		}
		if page.Metadata.Continue == "" {
			return nil
		}
		r.query.Set("continue", page.Metadata.Continue)
		if !r.metadata {
			bytes := 0
			for _, item := range page.Items {
				bytes += len(item.Data[content])
			}
			r.query.Set("limit", strconv.Itoa(storekit.Piece(len(page.Items), bytes, mostValues)))
		}
	}
}

// Folders lists the worker types below a prefix. Each request leaves out those that it knows, so that there are about as
// many as worker types, however many records they have. The API server looks at the labels of one object after the other
// meanwhile, so the types that end oddly, of which most namespaces have none, are looked for at the same time.
func (c *cluster) Folders(ctx context.Context, prefix string) ([]string, error) {
	kind := parse(prefix).kind
	found := make([][]string, 2)
	err := storekit.Several(len(found), func(i int) (err error) {
		if i == 0 {
			found[i], err = c.plainTypes(ctx, kind)
		} else {
			found[i], err = c.moreTypes(ctx, kindLabel+"="+kind+","+oddLabel, kind, nil, mostNames)
		}
		return err
	})
	return slices.Concat(found...), err
}

// plainTypes are the worker types whose names are their labels.
func (c *cluster) plainTypes(ctx context.Context, kind string) (known []string, err error) {
	selector := kindLabel + "=" + kind + ",!" + oddLabel
	for {
		without, limit := selector, fewNames
		if n := min(len(known), mostTypes); n > 0 {
			without += "," + typeLabel + " notin (" + strings.Join(known[:n], ",") + ")"
		}
		if len(known) > mostTypes {
			limit = mostNames // All that are left: a selector has no room for more.
		}
		more, err := c.moreTypes(ctx, without, kind, known, limit)
		known = append(known, more...)
		if err != nil || len(more) == 0 || limit == mostNames {
			return known, err
		}
	}
}

// moreTypes are worker types among the objects that a selector selects, without those that are known: all with the limit
// mostNames, else those of the first page that has any.
func (c *cluster) moreTypes(ctx context.Context, selector, kind string, known []string, limit int) (more []string, err error) {
	r := request{method: http.MethodGet, path: c.path(""), metadata: true, query: url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(limit)}}}
	for {
		var page list
		if err := c.do(ctx, r, &page); err != nil {
			return more, err
		}
		for _, item := range page.Items {
			if o, ok := identify(kind, item.Metadata); ok && !slices.Contains(known, o.workerType) && !slices.Contains(more, o.workerType) {
				more = append(more, o.workerType)
			}
		}
		if page.Metadata.Continue == "" || limit < mostNames && len(more) > 0 {
			return more, nil
		}
		r.query.Set("continue", page.Metadata.Continue)
	}
}

// Delete deletes an object.
func (c *cluster) Delete(ctx context.Context, name string) (bool, error) {
	err := c.do(ctx, request{method: http.MethodDelete, path: c.path(parse(name).name())}, nil)
	if s, ok := errors.AsType[*statusError](err); ok && s.code == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// Now asks for the API server's version, which costs it next to nothing and is granted to all users by default. The date
// of a refusal serves as well.
func (c *cluster) Now(ctx context.Context) (store.Stamp, error) {
	ctx, noted := storekit.Noting(ctx)
	err := c.do(ctx, request{method: http.MethodGet, path: "/version"}, nil)
	stamp := noted()
	if _, refused := errors.AsType[*statusError](err); err != nil && (!refused || stamp.IsZero()) {
		return store.Stamp{}, err
	}
	return stamp, nil
}

// Close ends watches and the connections.
func (c *cluster) Close() error {
	c.end()
	c.own.CloseIdleConnections()
	return nil
}
