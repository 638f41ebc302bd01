package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// namespace is what matters of a namespace.
type namespace struct {
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// check finds out whether the namespace can keep a ledger. A worker needs no right to read the namespace: without it,
// that shows when it appends.
func (c *cluster) check(ctx context.Context) error {
	n, err := c.readNamespace(ctx)
	if s, ok := errors.AsType[*statusError](err); ok && s.code == http.StatusForbidden {
		return nil
	}
	if err != nil {
		return err
	}
	if flaws := n.flaws(c.namespace); len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	return nil
}

// readNamespace reads the namespace. A 404 is store.ErrMissing.
func (c *cluster) readNamespace(ctx context.Context) (n namespace, err error) {
	err = c.do(ctx, request{method: http.MethodGet, path: "/api/v1/namespaces/" + url.PathEscape(c.namespace)}, &n)
	return n, err
}

// flaws are why a namespace is unfit.
func (n namespace) flaws(name string) []storekit.Flaw {
	if n.Status.Phase != "Terminating" {
		return nil
	}
	return []storekit.Flaw{{Check: store.CheckExpiry, What: fmt.Sprintf("the namespace %s is being deleted, with all that is in it", name), Remedy: "use another"}}
}

// createNamespace creates the namespace if it is missing, which takes the right to do so. A namespace that is there, or
// may not be looked at, is left as it is.
func (c *cluster) createNamespace(ctx context.Context) error {
	_, err := c.readNamespace(ctx)
	if s, ok := errors.AsType[*statusError](err); !ok || s.code != http.StatusNotFound {
		if ok && s.code == http.StatusForbidden {
			return nil
		}
		return err
	}
	body := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata{Name: c.namespace}}
	err = c.do(ctx, request{method: http.MethodPost, path: "/api/v1/namespaces", body: body}, nil)
	if s, ok := errors.AsType[*statusError](err); ok && s.code == http.StatusConflict && s.reason == reasonExists {
		err = nil
	}
	return err
}

// owned is the flaw of a record that Kubernetes' garbage collector deletes with its owner, or nil.
func owned(kind string, m metadata) *storekit.Flaw {
	if kind != kindRecord || len(m.OwnerReferences) == 0 {
		return nil
	}
	o := m.OwnerReferences[0]
	return &storekit.Flaw{Check: store.CheckExpiry, What: fmt.Sprintf("the ConfigMap %.120s belongs to the %.60s %.120s, and is deleted with it", m.Name, o.Kind, o.Name), Remedy: "find what sets ownerReferences there, and take them away"}
}

// changed is the flaw of a namespace in which something changes what is stored, or nil.
func changed(sent, stored configMap) *storekit.Flaw {
	flaw := func(what string) *storekit.Flaw {
		return &storekit.Flaw{Check: store.CheckConstraints, What: fmt.Sprintf("the record %s was stored %s", sent.Metadata.Name, what), Remedy: "keep admission webhooks and policies away from the namespace"}
	}
	switch {
	case stored.Metadata.Name != sent.Metadata.Name:
		return flaw("by another name")
	case len(stored.Metadata.OwnerReferences) > 0:
		return owned(kindRecord, stored.Metadata)
	case stored.Immutable == nil || !*stored.Immutable:
		return flaw("without being immutable, which Kubernetes knows since 1.21")
	case len(stored.Data) != 1 || stored.Data[content] != sent.Data[content]:
		return flaw("with another content")
	}
	for name, value := range sent.Metadata.Labels {
		if stored.Metadata.Labels[name] != value {
			return flaw("without its labels, by which it is found")
		}
	}
	return nil
}

// unordered is the flaw of a server whose lists aren't in the order of names.
func unordered() storekit.Flaw {
	return storekit.Flaw{Check: CheckOrder, What: "lists aren't in the order of names, so that the newest record isn't the first", Remedy: "use another server of Kubernetes' API"}
}
