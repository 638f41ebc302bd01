package pagetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
)

// slotJSON is a slot as the page gets it.
func slotJSON(begin time.Time, i int) map[string]any {
	at := begin.Add(time.Duration(i) * time.Minute)
	states := []string{"done", "done", "done", "failed", "missed", "skipped", "expired"}
	one := map[string]any{"slotStart": store.Format(at), "slotEnd": store.Format(at.Add(time.Minute)), "state": states[i*7%len(states)]}
	if state := one["state"]; state != "missed" {
		one["instanceId"], one["token"], one["seq"], one["attempt"] = fmt.Sprintf("worker-%d@vm-%d", i%3, i%3), at.UnixMilli(), i+1, 1
		one["windowStart"], one["windowEnd"] = one["slotStart"], one["slotEnd"]
		one["tookMs"], one["note"] = 1000+i%7*900, "done in 4s, at +4s"
	}
	return one
}

// statusJSON is a status with many types, each with its newest 50 slots.
func statusJSON(types int) map[string]any {
	now := time.Now().UTC().Truncate(time.Minute)
	var rows []map[string]any
	for i := range types {
		var recent []map[string]any
		for j := range 50 {
			recent = append(recent, slotJSON(now.Add(-50*time.Minute), i+j))
		}
		rows = append(rows, map[string]any{
			"workerType": fmt.Sprintf("group%d.type-%04d", i%20, i), "schedule": "cron */5 * * * * Europe/Berlin", "recent": recent,
			"last": slotJSON(now.Add(-time.Minute), i), "nextStart": store.Format(now.Add(time.Minute)), "nextInMs": 1000, "workersPresent": 3,
			"holder": map[string]any{"slotStart": store.Format(now), "slotEnd": store.Format(now.Add(time.Minute)), "state": "held", "instanceId": "worker@vm-1", "windowEnd": store.Format(now.Add(time.Minute))},
			"since":  store.Format(now), "warnings": []string{"the last slot failed: exit code 3"}[:i%2],
		})
	}
	return map[string]any{"storeTime": store.Format(time.Now()), "store": "sqlite:made-up.db", "types": rows}
}

// feed is a server of the page that s serves, with a stream that is made up: what events returns for a query.
func feed(t *testing.T, s site, events func(view, workerType string) map[string]any) (url string) {
	t.Helper()
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/events" {
			out := http.NewResponseController(w)
			w.Header().Set("Content-Type", "text/event-stream")
			for name, value := range events(r.URL.Query().Get("view"), r.URL.Query().Get("type")) {
				data, _ := json.Marshal(value)
				_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
			}
			_ = out.Flush()
			select {
			case <-done:
			case <-r.Context().Done():
			}
			return
		}
		answer, err := http.Get(s.url)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		for _, name := range []string{"Content-Type", "Content-Security-Policy"} {
			w.Header().Set(name, answer.Header.Get(name))
		}
		_, _ = io.Copy(w, answer.Body)
	}))
	t.Cleanup(func() { close(done); server.Close() })
	return server.URL
}

// drawn is what it cost to draw a page: the time of the processor that its script, styles and layout took, and the memory of its
// heap then.
type drawn struct {
	Took, Script, Layout float64 // in ms
	Heap                 float64 // in MB, after a collection
	Nodes                int
}

// draw opens an address of the page twice, and returns the quicker one: other tests run beside.
func draw(t *testing.T, url, ready string) (best drawn) {
	t.Helper()
	for range 2 {
		p := open(t, "about:blank", nil)
		var one drawn
		p.run(&one, fmt.Sprintf(`
			const client = await context.newCDPSession(page);
			await client.send('Performance.enable', {timeDomain: 'threadTicks'});
			const measure = async () => Object.fromEntries((await client.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
			await page.goto(args[0]);
			await page.waitForFunction(() => %s, null, {timeout: 60_000});
			await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
			const after = await measure();
			await client.send('HeapProfiler.collectGarbage');
			const rest = await measure();
			return {
				took: 1000 * (after.ScriptDuration + after.LayoutDuration + after.RecalcStyleDuration), script: 1000 * after.ScriptDuration,
				layout: 1000 * (after.LayoutDuration + after.RecalcStyleDuration), heap: rest.JSHeapUsedSize / 2 ** 20, nodes: after.Nodes,
			}`, ready), url)
		if best.Took == 0 || one.Took < best.Took {
			best = one
		}
	}
	return best
}

// What the page draws in which time and memory. The bounds are for a machine that does nothing else: what runs beside makes
// caches cold, so that three times as much is let pass.
func TestManyTypesAreDrawnAtOnce(t *testing.T) {
	s := serve(t, seeded(t))
	now := time.Now().UTC().Truncate(time.Minute)
	url := feed(t, s, func(view, workerType string) map[string]any {
		n := 1000
		if workerType != "" || view != "overview" {
			n = 1
		}
		status := statusJSON(n)
		if view != "type" {
			return map[string]any{"status": status}
		}
		var slots []map[string]any
		for i := range 500 {
			slots = append(slots, slotJSON(now.Add(-500*time.Minute), i))
		}
		return map[string]any{"status": status, "type": map[string]any{
			"slots":   map[string]any{"storeTime": store.Format(time.Now()), "workerType": workerType, "slots": slots},
			"workers": map[string]any{"storeTime": store.Format(time.Now()), "workers": []any{}},
		}}
	})
	hundred := feed(t, s, func(string, string) map[string]any { return map[string]any{"status": statusJSON(100)} })
	for _, c := range []struct {
		what, url, ready string
		most             float64 // ms
	}{
		{"1,000 types", url, `document.querySelectorAll("[data-type]").length === 1000`, 1000},
		{"100 types", hundred, `document.querySelectorAll("[data-type]").length === 100`, 200},
		{"500 slots of a type", url + "/#/type/group0.type-0000", `document.querySelectorAll(".line [data-state]").length > 20`, 200},
	} {
		got := draw(t, c.url, c.ready)
		t.Logf("%s: drawn in %.0f ms (script %.0f, layout %.0f), %d nodes, heap %.1f MB", c.what, got.Took, got.Script, got.Layout, got.Nodes, got.Heap)
		if got.Took > 3*c.most {
			t.Errorf("%s: drawn in %.0f ms, want %.0f", c.what, got.Took, c.most)
		}
		if got.Heap > 60 {
			t.Errorf("%s: a heap of %.1f MB, want 60 at most", c.what, got.Heap)
		}
	}
}

// Fifty people look at the page, and cost leasectl and the store hardly more than one does.
func TestFiftyViewersCostNoMoreThanOne(t *testing.T) {
	suites.Prove(t, "it measures a process")
	s := serve(t, seeded(t))
	const time1 = 5 * time.Second
	use := func() float64 {
		before := s.busy()
		time.Sleep(time1)
		return 100 * float64(s.busy()-before) / float64(time1)
	}
	view := func() {
		answer, err := http.Get(s.url + "api/v1/events")
		must(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		lines := bufio.NewReaderSize(answer.Body, 1<<20)
		for {
			line, err := lines.ReadString('\n')
			must(t, err)
			if strings.HasPrefix(line, "event: status") {
				break
			}
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }()
	}
	none := use()
	view()
	one := use()
	for range 49 {
		view()
	}
	fifty := use()
	t.Logf("of a processor: %.1f %% without a viewer, %.1f %% with one, %.1f %% with 50", none, one, fifty)
	if none > 2 || fifty > 5+2*one {
		t.Errorf("of a processor: %.1f %% without a viewer, %.1f %% with one, %.1f %% with 50; want 0, and no more than 5 beside what one costs", none, one, fifty)
	}
}
