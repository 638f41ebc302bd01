package pagetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// holderOf is who holds the newest lease of a worker type, by the ledger.
func holderOf(t *testing.T, l store.Ledger, workerType string) string {
	t.Helper()
	records, _, err := l.Tail(t.Context(), workerType, 1)
	must(t, err)
	if len(records) == 0 || records[0].Kind != store.KindGrant {
		return ""
	}
	return records[0].InstanceID
}

// The only worker is killed: its type is among those to look at, and no view says anything else.
func TestATypeWithoutWorkersIsToBeLookedAt(t *testing.T) {
	t.Parallel()
	suites.Prove(t, "it kills a worker")
	uri := backends[0].uri(t)
	cli(t, uri, "init")
	only := start(t, uri, "run", "--worker-type", "lead", "--every", "10s", "--continuous", "--failover-within", "2s", "--instance-id", "only", "--", "sleep", "1000")
	only.said("command started")
	s := serve(t, uri)
	p := open(t, s.url+"#/type/lead", nil)
	p.await("its slot is there", `return document.querySelectorAll("table.runs tbody tr").length > 0 && !document.body.innerText.includes("No slot yet.")`, nil)
	only.kill()
	p.await("it is gone", `return /gone[^]*died, or can't reach the store/.test(document.querySelector("main").innerText)`, nil)
	p.run(nil, `await page.getByRole('link', {name: 'Overview', exact: true}).click()`)
	p.await("its type is to be looked at", `return document.querySelector("#look").innerText.includes("no worker is there, 1 worker gone")`, nil)
	p.await("the filter counts as the list does", `return /To look at 1/.test(document.querySelector("main").innerText) && document.querySelector("#look-title").innerText === "1 worker type to look at"`, nil)
}

// The holder is killed, and whoever looks at the page sees the other one take over, within a second of the ledger.
func TestATakeOverShowsWithinASecondOfTheLedger(t *testing.T) {
	t.Parallel()
	suites.Prove(t, "it kills a worker")
	uri := backends[0].uri(t)
	cli(t, uri, "init")
	run := func(name, priority string) *program {
		return start(t, uri, "run", "--worker-type", "lead", "--every", "60s", "--continuous", "--failover-within", "2s", "--instance-id", name, "--priority", priority, "--", "sleep", "1000")
	}
	first := run("first", "0")
	first.said("command started")
	second := run("second", "1")
	s := serve(t, uri)
	p := open(t, s.url, nil)
	overview := `return (document.querySelector('[data-type=lead] .holder')?.innerText || '').trim() === arg`
	p.await("the first holds", overview, "first")
	p.run(nil, `await page.evaluate(() => {
		const look = () => { if (document.querySelector('[data-type=lead] .holder')?.innerText.trim() === 'second') window.seenAt = Date.now(); else requestAnimationFrame(look); };
		look();
	})`)
	l, err := store.Open(t.Context(), uri, store.OpenOptions{ReadOnly: true})
	must(t, err)
	defer l.Close(context.WithoutCancel(t.Context()))
	first.kill()
	for limit := time.Now().Add(patience); holderOf(t, l, "lead") != "second"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("the second has not taken over: %s", second.output())
		}
	}
	stored := time.Now()
	p.await("the second holds", `return window.seenAt > 0`, nil)
	var at int64
	p.run(&at, `return page.evaluate(() => window.seenAt)`)
	after := time.UnixMilli(at).Sub(stored)
	t.Logf("the page showed the take-over %v after the ledger had it", after.Round(time.Millisecond))
	// The page of leasectl looks once in a second. Beside other tests it has to wait for a processor, too.
	if after > 3*time.Second {
		t.Errorf("the page showed the take-over %v after the ledger had it, want 1 s", after)
	}
}

// The store is silent, and dies, and comes back; then leasectl does. The page says how old it is, and goes on by itself.
func TestThePageGoesOnWhenTheStoreOrTheServerIsBack(t *testing.T) {
	t.Parallel()
	suites.Prove(t, "it stops a server")
	server := mongopeer.Start(t)
	uri := mongoDatabase(t, server.URI())
	fill(t, uri, past(t).newest(3))
	s := serve(t, uri, "--timeout", "10s")
	p := open(t, s.url, nil)
	p.allow("Failed to load resource") // the console's words for a server that isn't there
	shows := func(live string) {
		t.Helper()
		p.await("the page is "+live, `return document.getElementById("live").dataset.live === arg`, live)
	}
	wantOld := func(text string) {
		t.Helper()
		shows(map[bool]string{true: "stale", false: "lost"}[text == "store"])
		p.await("the page says how old it is", `
			const banner = document.getElementById("banner");
			return !banner.hidden && banner.querySelector("time") && banner.innerText.includes(arg) && /ago/.test(banner.innerText)
				&& getComputedStyle(document.querySelector("main")).filter.includes("grayscale") && document.querySelectorAll("[data-type]").length > 5`, text)
	}
	wantLive := func() {
		t.Helper()
		shows("live")
		p.await("the page is as before", `return document.getElementById("banner").hidden && document.querySelectorAll("[data-type]").length > 5`, nil)
	}
	wantLive()
	server.Pause()
	wantOld("store")
	server.Resume()
	wantLive()
	server.Kill()
	wantOld("store")
	server.Restart()
	wantLive()
	// What happens now is seen, too.
	cli(t, uri, "pause", "--worker-type", "report.done", "--for", "1h", "--reason", "after the outage")
	p.shows("after the outage")
	s.kill()
	wantOld("leasectl")
	again := start(t, uri, "serve", "--listen", s.addr)
	again.said(`http://\S+/`)
	wantLive()
}

// An order is given from the page, with its reason and the line that does the same; and nobody gives one without the right.
func TestOrdersAreGivenFromThePageByThoseWhoMay(t *testing.T) {
	t.Parallel()
	uri := seeded(t)
	p := open(t, serve(t, uri).url+"#/type/report.done", nil)
	p.await("the timeline is there", `return document.querySelectorAll('.line [data-state=done]').length > 1`, nil)
	var buttons int
	p.run(&buttons, `return page.locator('[data-action]').count()`)
	if buttons != 0 {
		t.Errorf("a page that only shows has %d buttons to act", buttons)
	}
	s := serve(t, uri, "--allow-actions")
	p = open(t, s.url+"#/type/report.done", nil)
	act := func(action, command string, fields map[string]string) string {
		t.Helper()
		p.run(nil, `
			await page.locator('[data-action=' + args[0] + ']').click();
			for (const [name, value] of Object.entries(args[1])) {
				const field = page.locator('#act [name=' + name + ']');
				if (await field.evaluate((e) => e.tagName) === 'SELECT') await field.selectOption(value); else await field.fill(value);
			}`, action, fields)
		p.await("the command line is shown", `
			const text = document.getElementById("act-command").textContent;
			return arg.every((a) => text.includes(a))`, append([]string{"leasectl " + command + " --worker-type report.done"}, reasonOf(fields)...))
		line := p.text("#act-command")
		p.run(nil, `await page.locator('#act-go').click(); await page.locator('#act-go').waitFor({state: 'hidden'}); await page.locator('#act-cancel').click()`)
		return line
	}
	line := act("pause", "pause", map[string]string{"for": "2h", "reason": `it's "broken"; $(rm)`})
	p.shows(`$(rm)`)
	p.await("the page is paused", `return /paused/.test(document.querySelector("main h1").parentNode.innerText)`, nil)
	if status := cli(t, uri, "status", "--worker-type", "report.done"); !strings.Contains(status, `it's "broken"; $(rm)`) {
		t.Errorf("leasectl status = %s, want the reason", status)
	}
	if strings.Contains(line, uri) && !strings.HasPrefix(uri, "sqlite:") {
		t.Errorf("the line %q has the URI of the store", line)
	}
	act("resume", "resume", map[string]string{"reason": "mended"})
	p.await("the page isn't paused", `return !/paused/.test(document.querySelector("main h1").parentNode.innerText)`, nil)
	act("prefer", "prefer", map[string]string{"instanceId": "bert@vm-2", "for": "1h", "reason": "the other is slow"})
	p.shows("the other is slow")
	act("trigger", "trigger", map[string]string{"reason": "now, please"})
	p.shows("now, please")
	var orders struct {
		Types []struct {
			Orders []struct{ Kind, By, Why string }
		}
	}
	if err := json.Unmarshal([]byte(cli(t, uri, "status", "--worker-type", "report.done", "--output", "json")), &orders); err != nil || len(orders.Types) != 1 || len(orders.Types[0].Orders) != 2 {
		t.Errorf("leasectl status = %+v, %v, want a worker that is preferred, and a run", orders, err)
	}
}

// reasonOf are the fields that a command line must have as they are.
func reasonOf(fields map[string]string) (parts []string) {
	for name, value := range fields {
		if name != "reason" && !strings.ContainsAny(value, "@") {
			parts = append(parts, fmt.Sprint(value))
		}
	}
	return parts
}
