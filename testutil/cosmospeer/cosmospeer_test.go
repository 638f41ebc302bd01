package cosmospeer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

var within = suites.Deadline

// try does one request to a peer, with the headers given in pairs.
func try(ctx context.Context, addr, method, path, body string, headers ...string) (status int, reply string, header http.Header, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), res.Header, err
}

// want does a request that must give a status, and returns the body.
func want(t *testing.T, addr string, status int, method, path, body string, headers ...string) string {
	t.Helper()
	got, reply, _, err := try(within(t), addr, method, path, body, headers...)
	if err != nil || got != status {
		t.Fatalf("%s %s = %d %.300s, %v, want %d", method, path, got, reply, err, status)
	}
	return reply
}

const (
	docs      = "/dbs/d/colls/c/docs"
	partition = "x-ms-documentdb-partitionkey"
)

// populate makes a container.
func populate(t *testing.T, addr string) {
	t.Helper()
	want(t, addr, 201, "POST", "/dbs", `{"id":"d"}`)
	want(t, addr, 201, "POST", "/dbs/d/colls", `{"id":"c","partitionKey":{"paths":["/workerType"],"kind":"Hash"}}`)
}

func item(id string) string { return fmt.Sprintf(`{"id":%q,"workerType":"job"}`, id) }

func TestRestartKeepsPortDataAndTimes(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	uri := s.URI()
	populate(t, s.Addr())
	for _, id := range []string{"job:1", "job:2", "job:3"} {
		want(t, s.Addr(), 201, "POST", docs, item(id), partition, `["job"]`)
	}
	want(t, s.Addr(), 409, "POST", docs, item("job:3"), partition, `["job"]`)
	want(t, s.Addr(), 204, "DELETE", docs+"/job:2", "", partition, `["job"]`)
	read := func(id string) (fields map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(want(t, s.Addr(), 200, "GET", docs+"/"+id, "", partition, `["job"]`)), &fields); err != nil {
			t.Fatal(err)
		}
		return fields
	}
	before := read("job:1")

	for range 2 { // The second restart replays what the first one has replayed.
		// In another second, by _ts.
		time.Sleep(time.Second)
		peertest.RestartsAtItsAddress(t, s.Server)
		if after := read("job:1"); after["id"] != before["id"] || after["_ts"] != before["_ts"] || after["_rid"] != before["_rid"] {
			t.Errorf("item after Restart = %v, want %v", after, before)
		}
		want(t, s.Addr(), 404, "GET", docs+"/job:2", "", partition, `["job"]`)
		want(t, s.Addr(), 409, "POST", docs, item("job:3"), partition, `["job"]`)
	}
	want(t, s.Addr(), 201, "POST", docs, item("job:4"), partition, `["job"]`)

	s.RestartEmpty()
	if got := s.URI(); got != uri {
		t.Errorf("URI() after RestartEmpty = %q, want %q", got, uri)
	}
	want(t, s.Addr(), 404, "GET", "/dbs/d", "")
}

func TestPausedPeerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	isSilentWhilePaused(t, Start(t, Options{}))
}

func isSilentWhilePaused(t *testing.T, s *Server) {
	t.Helper()
	peertest.IsSilentWhilePaused(t, s.Server, func(ctx context.Context) error {
		_, _, _, err := try(ctx, s.Addr(), "GET", "/", "")
		return err
	})
}

func TestClockIsOffByTheOffset(t *testing.T) {
	t.Parallel()
	for _, offset := range []time.Duration{-90 * time.Second, 90 * time.Second} {
		t.Run(offset.String(), func(t *testing.T) {
			t.Parallel()
			s := Start(t, Options{ClockOffset: offset})
			populate(t, s.Addr())
			for range 2 {
				sent := time.Now()
				_, _, header, err := try(within(t), s.Addr(), "GET", "/", "")
				received := time.Now()
				at, dateErr := http.ParseTime(header.Get("Date"))
				// The header is truncated, and may have been made a second before.
				if err != nil || dateErr != nil || at.Before(sent.Add(offset-2*time.Second)) || at.After(received.Add(offset)) {
					t.Errorf("Date = %q, %v, %v, want that of %v with %v", header.Get("Date"), err, dateErr, sent, offset)
				}
				s.Restart()
			}
			var stored struct {
				TS int64 `json:"_ts"`
			}
			sent := time.Now()
			reply := want(t, s.Addr(), 201, "POST", docs, item("job:1"), partition, `["job"]`)
			if err := json.Unmarshal([]byte(reply), &stored); err != nil || stored.TS < sent.Add(offset).Unix() || stored.TS > time.Now().Add(offset).Unix() {
				t.Errorf("_ts = %d, %v, want that of %v with %v", stored.TS, err, sent, offset)
			}
			isSilentWhilePaused(t, s)
		})
	}
}

// What package documentation says of the peer, which the tests of others build on.
func TestPeerIsAsDocumented(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	if root := want(t, s.Addr(), 200, "GET", "/", ""); !strings.Contains(root, `"databaseAccountEndpoint":"http://`+s.Addr()+`/"`) || strings.Contains(root, "https:") {
		t.Errorf("GET / = %s, want its own addresses with http", root)
	}
	populate(t, s.Addr())
	want(t, s.Addr(), 201, "POST", docs, item("job:1"), partition, `["job"]`)
	query := func(status int, text string) string {
		t.Helper()
		q, err := json.Marshal(map[string]any{"query": text, "parameters": []any{map[string]any{"name": "@t", "value": "job"}}})
		if err != nil {
			t.Fatal(err)
		}
		return want(t, s.Addr(), status, "POST", docs, string(q),
			"content-type", "application/query+json", "x-ms-documentdb-isquery", "True", partition, `["job"]`)
	}
	for _, c := range []struct {
		name string
		test func()
	}{
		{"an absent item gives 404", func() { want(t, s.Addr(), 404, "GET", docs+"/job:9", "", partition, `["job"]`) }},
		{"an item of another partition gives 404", func() { want(t, s.Addr(), 404, "GET", docs+"/job:1", "", partition, `["other"]`) }},
		{"an absent item of a container has no substatus", func() {
			if _, _, header, err := try(within(t), s.Addr(), "GET", docs+"/job:9", "", partition, `["job"]`); err != nil || header.Get("x-ms-substatus") != "" {
				t.Errorf("substatus = %q, %v, want none", header.Get("x-ms-substatus"), err)
			}
		}},
		{"an item of a missing container gives 404, substatus 1003", func() {
			for _, r := range [][3]string{{"GET", "/a", ""}, {"POST", "", item("a")}, {"DELETE", "/a", ""}} {
				status, _, header, err := try(within(t), s.Addr(), r[0], "/dbs/d/colls/x/docs"+r[1], r[2], partition, `["job"]`)
				if err != nil || status != 404 || header.Get("x-ms-substatus") != "1003" {
					t.Errorf("%s = %d, substatus %q, %v, want 404, 1003", r[0], status, header.Get("x-ms-substatus"), err)
				}
			}
		}},
		{"a query in a partition", func() {
			if got := query(200, "SELECT TOP 1 * FROM c WHERE c.workerType = @t ORDER BY c.id DESC"); !strings.Contains(got, `"_count":1`) {
				t.Errorf("query = %s, want one item", got)
			}
		}},
		{"GetCurrentTimestamp gives 400", func() { query(400, "SELECT c, GetCurrentTimestamp() AS now FROM c WHERE c.workerType = @t") }},
	} {
		t.Run(c.name, func(*testing.T) { c.test() })
	}
	// A query is no write, so it isn't in the journal.
	b, err := os.ReadFile(filepath.Join(s.Data(), "journal"))
	if n := bytes.Count(b, []byte("\n")); err != nil || n != 3 {
		t.Errorf("journal has %d lines, %v, want 3", n, err)
	}
	if bytes.Contains(b, []byte("authorization")) {
		t.Error("journal holds the header authorization, want it left out")
	}
}

func TestSharedPeerIsStartedOnce(t *testing.T) {
	t.Setenv("COSMOS_URI", "")
	first := peertest.IsShared(t, URI)
	u, err := url.Parse(first)
	if err != nil || u.Scheme != "cosmos" || u.Query().Get("insecureHTTP") != "true" {
		t.Fatalf("URI() = %q, %v, want the scheme cosmos and insecureHTTP=true", first, err)
	}
	want(t, u.Host, 200, "GET", "/", "")
	if Key() != key {
		t.Errorf("Key() = %q, want that of the peer", Key())
	}
}

func TestURIAndKeyPreferTheEnvironment(t *testing.T) {
	t.Setenv("COSMOS_URI", "cosmos://account/")
	t.Setenv("COSMOS_KEY", "bXkga2V5")
	if got := URI(t); got != "cosmos://account/" {
		t.Errorf("URI() = %q, want that of COSMOS_URI", got)
	}
	if got := Key(); got != "bXkga2V5" {
		t.Errorf("Key() = %q, want that of COSMOS_KEY", got)
	}
}

func TestPeerEndsWithItsTestBinary(t *testing.T) {
	peertest.EndsWithItsTestBinary(t, shared)
}
