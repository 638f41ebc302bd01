package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/benbjohnson/clock"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slotlease/slotlease/store/storekit"
)

// mostReply bounds a reply, in bytes. An object has at most 1.5 MiB.
const mostReply = 64 << 20

// cluster is a namespace as the ledger sees it. It is a storekit.Objects.
type cluster struct {
	// base is the URL of the API server, and host the part of it that is shown.
	base, host string
	namespace  string
	skew       time.Duration
	verified   bool // The server's certificate is.
	clock      clock.Clock
	secrets    storekit.Secrets
	runner     *storekit.Runner
	history    history
	own        *http.Transport
	web        *http.Client
	// life ends with Close, and with it watches.
	life context.Context
	end  context.CancelFunc
}

// metadata are those of an object that matter here.
type metadata struct {
	Name            string                  `json:"name"`
	Labels          map[string]string       `json:"labels,omitempty"`
	Annotations     map[string]string       `json:"annotations,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	ResourceVersion string                  `json:"resourceVersion,omitempty"`
}

// configMap is an object of a ledger.
type configMap struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Metadata   metadata          `json:"metadata"`
	Immutable  *bool             `json:"immutable,omitempty"`
	Data       map[string]string `json:"data,omitempty"`
}

// list is a page of a list.
type list struct {
	Metadata struct {
		Continue        string `json:"continue"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []configMap `json:"items"`
}

// path is that of the namespace's ConfigMaps, or of one.
func (c *cluster) path(name string) string {
	p := "/api/v1/namespaces/" + url.PathEscape(c.namespace) + "/configmaps"
	if name != "" {
		p += "/" + url.PathEscape(name)
	}
	return p
}

// request is one request of the API.
type request struct {
	method, path string
	query        url.Values
	body         any
	// metadata asks for the metadata of a list's objects alone.
	metadata bool
}

// send sends a request. The caller closes the body of the reply.
func (c *cluster) send(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, storekit.NotStored(err)
		}
		body = bytes.NewReader(text)
	}
	to := c.base + r.path
	if len(r.query) > 0 {
		to += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, to, body)
	if err != nil {
		return nil, storekit.NotStored(err)
	}
	req.Header.Set("Accept", "application/json")
	if r.metadata {
		req.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.web.Do(req)
}

// do sends a request and reads its reply into a value, which may be nil. It notes the time of the reply.
func (c *cluster) do(ctx context.Context, r request, into any) error {
	before := c.history.seen()
	reply, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	stamp := c.dates().Stamp(reply)
	defer func() {
		stamp.History = c.history.name()
		storekit.Note(ctx, stamp)
	}()
	text, err := io.ReadAll(io.LimitReader(reply.Body, mostReply+1))
	switch {
	case err != nil:
		return err
	case len(text) > mostReply:
		return fmt.Errorf("the reply to %s %s has more than %d bytes", r.method, r.path, mostReply)
	case reply.StatusCode >= 300:
		return refusal(reply, text)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.New("the reply is no JSON of the API: is that the URL of an API server?")
	}
	switch got := into.(type) {
	case *list:
		if !r.query.Has("continue") { // The other pages show what there was at the first.
			c.history.follow(before, got.Metadata.ResourceVersion)
		}
	case *configMap:
		if r.method == http.MethodPost {
			c.history.follow(before, got.Metadata.ResourceVersion)
		}
	}
	return nil
}

// dates makes stamps of the Date header, which API servers, Go programs, write for each reply anew.
func (c *cluster) dates() storekit.Dates {
	return storekit.Dates{Skew: c.skew, Server: c.host, Fresh: true}
}
