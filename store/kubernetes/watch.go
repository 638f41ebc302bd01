package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Watcher = (*Ledger)(nil)

// leastWatch is how long a watch lasts at least that the API server ends as it ends all, after half an hour and more.
const leastWatch = time.Second

// Watch watches the records, by Kubernetes' own watch, which takes the right to. Without it the error matches
// errors.ErrUnsupported.
func (l *Ledger) Watch(ctx context.Context, changed func(workerType string)) error {
	c := l.c
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	var why error
	for why == nil {
		began := c.clock.Now()
		why = c.follow(inner, changed)
		if why == nil && c.clock.Since(began) < leastWatch {
			why = errors.New("the watch has ended at once")
		}
	}
	if s, ok := errors.AsType[*statusError](why); ok && s.code == http.StatusForbidden {
		why = fmt.Errorf("%w: %w", errors.ErrUnsupported, why)
	}
	// It names the end of ctx or of the ledger in its place, if there is one.
	_, err := storekit.RunUnchecked(ctx, c.runner, "watch", "", func(context.Context) (none struct{}, err error) { return none, why })
	return err
}

// event is one of a watch. The object of an ERROR is a Status.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// follow follows the records from now on, until the API server ends that, which is no error.
func (c *cluster) follow(ctx context.Context, changed func(workerType string)) error {
	query := url.Values{"labelSelector": {object{kind: kindRecord}.selector()}, "limit": {"1"}}
	var now struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := c.do(ctx, request{method: http.MethodGet, path: c.path(""), query: query, metadata: true}, &now); err != nil {
		return err
	}
	query = url.Values{"labelSelector": query["labelSelector"], "watch": {"true"}, "resourceVersion": {now.Metadata.ResourceVersion}}
	reply, err := c.send(ctx, request{method: http.MethodGet, path: c.path(""), query: query})
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(io.LimitReader(reply.Body, mostReply))
		return refusal(reply, text)
	}
	events := json.NewDecoder(reply.Body)
	for {
		var e event
		switch err := events.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch e.Type {
		case "ADDED":
			var m configMap
			if err := json.Unmarshal(e.Object, &m); err != nil {
				return err
			}
			if o, ok := identify(kindRecord, m.Metadata); ok && storekit.Frees([]byte(m.Data[content])) && ctx.Err() == nil {
				changed(o.workerType)
			}
		case "ERROR":
			return fmt.Errorf("the watch has failed: %s", storekit.OneLine(string(e.Object)))
		}
	}
}
