package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/store"
)

// params are the paths of the API, below api/v1/, with the parameters that each takes.
var params = map[string][]string{
	"status": {"type"}, "slots": {"type", "n"}, "workers": {"type"}, "why": {"type", "at", "worker"}, "run": {"type", "at"},
	"doctor": nil, "verify": nil, "events": {"type", "view"}, "orders": {"dry"},
}

// question is what a request asks for.
type question struct {
	subject

	path, instance string
	last           int
	at             inspect.Moment
	dry            bool
}

// questionOf reads the query of a request.
func questionOf(r *http.Request, path string, takes []string) (q question, err error) {
	bad := func(format string, args ...any) (question, error) {
		return q, refuse(http.StatusBadRequest, format, args...)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return bad("the query can't be read: %v", err)
	}
	for name, values := range query {
		if !slices.Contains(takes, name) {
			return bad("parameter %.40q: is unknown", name)
		}
		if len(values) > 1 {
			return bad("%s: is there %d times", name, len(values))
		}
	}
	const most = 1000
	n, at := cmp.Or(query.Get("n"), strconv.Itoa(mostSlots)), query.Get("at")
	q = question{path: path, instance: query.Get("worker"), dry: query.Has("dry")}
	q.view, q.workerType = cmp.Or(query.Get("view"), "overview"), query.Get("type")
	q.last, err = strconv.Atoi(n)
	needsType := q.view == "type" || path == "slots" || path == "why" || path == "run"
	switch {
	case !slices.Contains([]string{"overview", "type", "machines", "health"}, q.view):
		return bad("view %.40q: must be overview, type, machines or health", q.view)
	case path == "events" && q.view != "type" && q.workerType != "":
		return bad("type %.70q: goes with view=type only", q.workerType)
	case (needsType || q.workerType != "") && store.CheckWorkerType(q.workerType) != nil:
		return bad("type %.70q: no worker type has such a name", q.workerType)
	case err != nil || q.last < 1 || q.last > most:
		return bad("n %.40q: must be a whole number from 1 to %d", n, most)
	case at != "":
		if q.at, err = inspect.ParseMoment(at); err != nil {
			return bad("at %.40q: %v", at, err)
		}
		q.at = q.at.InUTC()
	}
	return q, nil
}

// api answers a request below api/v1/, unless there is an error to answer with.
func (p *Page) api(w http.ResponseWriter, r *http.Request, path string) error {
	user, err := p.o.Access.check(r)
	if err != nil {
		return err
	}
	takes, known := params[path]
	wanted := http.MethodGet
	if path == "orders" {
		wanted = http.MethodPost
	}
	switch {
	case !known:
		return refuse(http.StatusNotFound, "no such path %.80q below api/v%d/", path, API)
	case r.Method != wanted:
		return refuse(http.StatusMethodNotAllowed, "method %.20q: %s takes %s", r.Method, path, wanted)
	}
	q, err := questionOf(r, path, takes)
	if err != nil {
		return err
	}
	ask := func(ctx context.Context) (any, error) { return p.answer(ctx, q) }
	switch path {
	case "events":
		return p.events(w, r, q.subject, user)
	case "orders":
		if ask, err = p.order(w, r, user, q.dry); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*p.o.Timeout)
	defer cancel()
	select {
	case p.asks <- struct{}{}:
		defer func() { <-p.asks }()
	case <-ctx.Done():
		return refuse(http.StatusServiceUnavailable, "too many ask at a time: try again in a moment")
	}
	value, err := ask(ctx)
	if err == nil {
		p.write(w, http.StatusOK, value)
	}
	return err
}

// answer is what a command prints.
func (p *Page) answer(ctx context.Context, q question) (value any, err error) {
	r, err := p.Open(ctx, q.workerType)
	if err != nil {
		return nil, err
	}
	switch q.path {
	case "status":
		value, err = r.Status(ctx, q.workerType, 0)
	case "slots":
		value, err = r.Slots(ctx, q.workerType, q.last)
	case "workers":
		value, err = r.Workers(ctx, q.workerType)
	case "why":
		value, err = r.Why(ctx, q.workerType, inspect.Question{At: q.at, InstanceID: q.instance})
	case "run":
		value, err = r.Run(ctx, q.workerType, q.at)
	case "doctor", "verify":
		var found health
		if found, err = p.health(ctx); q.path == "doctor" {
			return found.Doctor, err
		}
		value, err = found.Verify, cmp.Or(err, found.unverified)
	}
	return value, p.forsake(err)
}

// write answers with a value as JSON.
func (p *Page) write(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	body := append(p.encode(value), '\n')
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
	w.WriteHeader(code)
	_, _ = w.Write(body) // Whoever has gone has no answer.
}

// codes are those of errors that commands would end with. What isn't there is a worker type or worker: the form was checked
// before.
var codes = map[int]int{exit.Usage: http.StatusNotFound, exit.Failure: http.StatusConflict, exit.Unallocated: http.StatusConflict}

// fail answers with an error.
func (p *Page) fail(w http.ResponseWriter, err error) {
	code := http.StatusServiceUnavailable
	if f, ok := errors.AsType[failure](err); ok {
		code = f.code
	} else if e, ok := errors.AsType[*exit.Error](err); ok {
		code = cmp.Or(codes[e.Code], code)
	}
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "slotlease"))
	}
	p.write(w, code, map[string]string{"error": oneLine(err)})
}

// oneLine is an error as a line, with what to try.
func oneLine(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Try != "" {
		text += "; try: " + e.Try
	}
	return display.Line(text)
}
