package httpfence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/httpfence"
	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

var _ httpfence.Store = (*sqlfence.Store)(nil)

// post sends a request with a token, and returns its status and what Refused says.
func post(ctx context.Context, server *httptest.Server, name string, token int64) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("x"))
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: &httpfence.Transport{Base: server.Client().Transport, Name: name, Token: token}}
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, errors.Join(httpfence.Refused(response), response.Body.Close())
}

// The holder with token 2 has written, so the one with token 1 no longer can.
func Example() {
	server := httptest.NewServer(httpfence.Middleware(&httpfence.Memory{}, httpfence.Options{},
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			fmt.Println(httpfence.FromContext(r.Context()))
		})))
	defer server.Close()
	for _, token := range []int64{2, 1} {
		fmt.Println(post(context.Background(), server, "invoices", token))
	}
	// Output:
	// invoices 2 true
	// 200 <nil>
	// 409 fence "invoices": the token 1 is stale, since 2 has been seen
}

func TestRefused(t *testing.T) {
	server := httptest.NewServer(httpfence.Middleware(&httpfence.Memory{}, httpfence.Options{}, http.NotFoundHandler()))
	defer server.Close()
	const odd = "Rechnungen für\r\n50 %"
	if status, err := post(t.Context(), server, odd, 7); status != http.StatusNotFound || err != nil {
		t.Errorf("token 7: %d, %v", status, err)
	}
	var stale *fence.StaleError
	if status, err := post(t.Context(), server, odd, 6); status != http.StatusConflict || !errors.As(err, &stale) || *stale != (fence.StaleError{Name: odd, Token: 6, Newest: 7}) {
		t.Errorf("token 6: %d, %v", status, err)
	}
	own := &http.Response{StatusCode: http.StatusConflict, Header: http.Header{}}
	if err := httpfence.Refused(own); err != nil {
		t.Errorf("a handler's own 409: %v", err)
	}
	own.Header.Set(httpfence.HeaderNewest, "x")
	if err := httpfence.Refused(own); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a garbled refusal: %v", err)
	}
}

type failing struct{}

func (failing) Raise(context.Context, string, int64) (int64, error) {
	return 0, errors.New("down")
}

func TestStatus(t *testing.T) {
	for name, test := range map[string]struct {
		method, token, fence string
		store                httpfence.Store
		status               int
	}{
		"valid":       {"POST", "1", "a", &httpfence.Memory{}, 204},
		"a read":      {"GET", "", "", failing{}, 204},
		"no token":    {"POST", "", "a", &httpfence.Memory{}, 412},
		"no number":   {"DELETE", "x", "a", &httpfence.Memory{}, 400},
		"zero":        {"PUT", "0", "a", &httpfence.Memory{}, 400},
		"no name":     {"PATCH", "1", "", &httpfence.Memory{}, 400},
		"not encoded": {"POST", "1", "%", &httpfence.Memory{}, 400},
		"store down":  {"POST", "1", "a", failing{}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			handler := httpfence.Middleware(test.store, httpfence.Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
			}))
			r := httptest.NewRequestWithContext(t.Context(), test.method, "/", http.NoBody)
			if test.token != "" {
				r.Header.Set(httpfence.HeaderToken, test.token)
			}
			if test.fence != "" {
				r.Header.Set(httpfence.HeaderName, test.fence)
			}
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != test.status {
				t.Errorf("status %d, want %d", w.Code, test.status)
			}
		})
	}
}

// Writes are checked again where they are stored, as a handler should: by the same store, in the
// transaction of the write.
func TestManyHolders(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db")+"?_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), sqlfence.Schema(sqlfence.SQLite)+"; CREATE TABLE writes (id INTEGER PRIMARY KEY, token INTEGER)"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpfence.Middleware(sqlfence.NewStore(db, sqlfence.SQLite), httpfence.Options{},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, token, _ := httpfence.FromContext(r.Context())
			err := sqlfence.Do(r.Context(), db, sqlfence.SQLite, name, token, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(r.Context(), "INSERT INTO writes (token) VALUES (?)", token)
				return err
			})
			if httpfence.Refuse(w, err) {
				return
			}
			if err != nil {
				t.Error(err)
			}
		})))
	defer server.Close()
	var all sync.WaitGroup
	var accepted atomic.Int64
	const most = 60
	for _, i := range rand.Perm(2 * most) {
		all.Go(func() {
			switch status, err := post(t.Context(), server, "a", int64(i/2+1)); {
			case err == nil && status == http.StatusOK:
				accepted.Add(1)
			case !errors.Is(err, fence.ErrStale):
				t.Errorf("status %d, %v", status, err)
			}
		})
	}
	all.Wait()
	rows, err := db.QueryContext(t.Context(), "SELECT token FROM writes ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var writes []int64
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		writes = append(writes, token)
	}
	if rows.Err() != nil || !slices.IsSorted(writes) || len(writes) == 0 || writes[len(writes)-1] != most || int64(len(writes)) != accepted.Load() {
		t.Errorf("writes: %v, %v; %d accepted", writes, rows.Err(), accepted.Load())
	}
}

// A handler that doesn't check again may write after a newer holder: the first request
// passes the middleware and waits, and the second one overtakes it.
func TestTheMiddlewareAloneIsNotEnough(t *testing.T) {
	passed, proceed := make(chan struct{}), make(chan struct{})
	var writes []int64
	server := httptest.NewServer(httpfence.Middleware(&httpfence.Memory{}, httpfence.Options{},
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, token, _ := httpfence.FromContext(r.Context())
			if token == 1 {
				close(passed)
				<-proceed
			}
			writes = append(writes, token)
		})))
	defer server.Close()
	first := make(chan error, 1)
	go func() {
		_, err := post(t.Context(), server, "a", 1)
		first <- err
	}()
	<-passed
	_, err := post(t.Context(), server, "a", 2)
	close(proceed)
	if err := errors.Join(err, <-first); err != nil {
		t.Fatal(err)
	}
	if len(writes) != 2 || writes[1] != 1 {
		t.Errorf("writes: %v", writes)
	}
}
