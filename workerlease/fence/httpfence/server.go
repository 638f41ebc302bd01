package httpfence

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/slotlease/slotlease/workerlease/fence"
)

// Store keeps the highest token seen of each fence. sqlfence.Store is one.
type Store interface {
	// Raise raises the fence name to token, atomically, and returns the highest token
	// seen, which is never lower. It is called by many goroutines.
	Raise(ctx context.Context, name string, token int64) (newest int64, err error)
}

// Memory is a [Store] for one process. It forgets when the process ends, and then takes
// the first token that comes. The zero value is ready.
type Memory struct {
	mutex  sync.Mutex
	newest map[string]int64
}

// Raise implements [Store]. It returns no errors.
func (m *Memory) Raise(_ context.Context, name string, token int64) (newest int64, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.newest == nil {
		m.newest = map[string]int64{}
	}
	m.newest[name] = max(m.newest[name], token)
	return m.newest[name], nil
}

// Options say how a server checks.
type Options struct {
	// Name returns the fence of a request. Nil trusts the client's header, so that any
	// client can raise any fence, and fill the store with names.
	Name func(*http.Request) (string, error)
	// Failed is told why the store couldn't be asked. Nil tells nobody: the client sees
	// only the status.
	Failed func(*http.Request, error)
}

type key struct{}

type held struct {
	name  string
	token int64
}

// FromContext returns the fence and the token of a request that [Middleware] let through,
// or false if it has none.
func FromContext(ctx context.Context) (name string, token int64, ok bool) {
	h, ok := ctx.Value(key{}).(held)
	return h.name, h.token, ok
}

// Middleware refuses requests with stale tokens, and calls next with the others. See the
// package's documentation for what that doesn't prevent.
func Middleware(s Store, o Options, next http.Handler) http.Handler {
	if o.Name == nil {
		o.Name = fromHeader
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
			next.ServeHTTP(w, r)
			return
		}
		sent := r.Header.Values(HeaderToken)
		if len(sent) == 0 {
			http.Error(w, "the header "+HeaderToken+" is missing", http.StatusPreconditionFailed)
			return
		}
		name, err := o.Name(r)
		var token int64
		if err == nil {
			token, err = parse(name, sent)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		newest, err := s.Raise(r.Context(), name, token)
		if err != nil {
			if o.Failed != nil {
				o.Failed(r, err)
			}
			http.Error(w, "the fence can't be asked", http.StatusServiceUnavailable)
			return
		}
		if Refuse(w, fence.Compare(name, token, newest)) {
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, held{name, token})))
	})
}

// Refuse answers as [Middleware] does, if err is a [fence.StaleError], and reports whether it did. It is for
// handlers, which check the token again where they store.
func Refuse(w http.ResponseWriter, err error) bool {
	var stale *fence.StaleError
	if !errors.As(err, &stale) {
		return false
	}
	w.Header().Set(HeaderName, url.PathEscape(stale.Name))
	w.Header().Set(HeaderToken, strconv.FormatInt(stale.Token, 10))
	w.Header().Set(HeaderNewest, strconv.FormatInt(stale.Newest, 10))
	http.Error(w, stale.Error(), http.StatusConflict)
	return true
}

func parse(name string, sent []string) (int64, error) {
	if len(sent) > 1 {
		return 0, errors.New("there are many headers " + HeaderToken)
	}
	token, err := strconv.ParseInt(sent[0], 10, 64)
	if err != nil {
		return 0, errors.New("the header " + HeaderToken + " is no integer")
	}
	return token, fence.Validate(name, token)
}

func fromHeader(r *http.Request) (string, error) {
	sent := r.Header.Values(HeaderName)
	if len(sent) != 1 {
		return "", errors.New("one header " + HeaderName + " is needed")
	}
	name, err := url.PathUnescape(sent[0])
	if err != nil {
		return "", errors.New("the header " + HeaderName + " isn't percent-encoded")
	}
	return name, nil
}
