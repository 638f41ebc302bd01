package pagetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
)

// shownOf is what the overview must show of a worker type, in its row or in what there is to look at: the right sentence for
// whoever is called at night.
var shownOf = map[string][]string{
	"report.done":    {"done", "waiting"},
	"report.fails":   {"failed", "exit code 3", "given up"},
	"report.cut":     {"held", "@vm-", "cut at the end of its slot"}, // Either may have it: both step back, for random times.
	"report.skips":   {"held", "skipped"},
	"mail.missed":    {"done", "waiting"},
	"mail.nobody":    {"nobody has the slot", "missed"},
	"mail.triggered": {"done"},
	"lead.paused":    {"paused", "rosa@desk", "moving the database"},
	"lead.drained":   {"bert@vm-2", "drains host vm-1", "new kernel"},
	"lead.dead":      {"dora@vm-4 holds, and isn't there"},
	"sync.differs":   {"schedules differ", "every 2h"},
	"sync.skewed":    {"carl@vm-3 on vm-3 is 40s ahead of store time"},
	"zz.hostile":     {"</script><script>alert(1)</script>", "<b>bold</b>"},
}

func TestEachViewOnEachStore(t *testing.T) {
	suites.Prove(t, "it starts servers and a browser")
	h := past(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			uri, h, verified := b.uri(t), h, "Sound: no rule is broken"
			if b.name == "MongoDB" {
				h, verified = h.newest(10), "trimmed-too-much" // The peer reads a whole collection for each answer.
			}
			fill(t, uri, h)
			s := serve(t, uri)
			p := open(t, s.url, nil)
			p.await("all worker types are there", `return document.querySelectorAll("[data-type]").length === arg`, len(shownOf))
			for workerType, words := range shownOf {
				for _, word := range words {
					p.await(fmt.Sprintf("the row of %s says %q", workerType, word), `
						const row = document.querySelector('[data-type="' + arg[0] + '"]');
						return row.innerText.includes(arg[1])`, []string{workerType, word})
				}
			}
			oneClickFromARedSlot(t, p, uri)
			oneType(t, p)
			machines(t, p)
			health(t, p, verified)
		})
	}
}

// oneClickFromARedSlot clicks on a missed slot of a strip, and wants the sentences of leasectl why.
func oneClickFromARedSlot(t *testing.T, p *tab, uri string) {
	t.Helper()
	var slot string
	p.run(&slot, `
		const strip = page.locator('[data-type="mail.nobody"] .slots'), tip = page.locator('#tip');
		await strip.scrollIntoViewIfNeeded();
		const area = await strip.boundingBox();
		for (let x = area.width - 2; x > 0; x -= 3) {
			await page.mouse.move(area.x + x, area.y + area.height / 2);
			if (/missed/.test(await tip.textContent())) { await page.mouse.down(); await page.mouse.up(); return (await tip.textContent()).split('\n')[0]; }
		}
		throw new Error('no slot of the strip is missed: ' + await tip.textContent())`)
	p.await("a sentence says who had it", `return /^Nobody had the slot/.test(document.querySelector("#why .say")?.innerText || "")`, nil)
	var at string
	p.run(&at, `return new URLSearchParams(page.url().split('?')[1]).get('at')`)
	said := cli(t, uri, "why", "--worker-type", "mail.nobody", "--at", at)
	shown := strings.Join(strings.Fields(p.text("#why")), " ")
	for _, sentence := range []string{"Nobody had the slot", "mail.nobody"} {
		if !strings.Contains(shown, sentence) || !strings.Contains(said, sentence) {
			t.Errorf("of the slot %s the page says %q, and leasectl why %q: both want %q", slot, shown, said, sentence)
		}
	}
	p.run(nil, `await page.keyboard.press('Escape')`)
	p.await("the reason is closed", `return document.getElementById("why").hidden`, nil)
}

// oneType looks at the page of a job that fails, and asks for the reason of a run by its mark in the timeline.
func oneType(t *testing.T, p *tab) {
	t.Helper()
	p.run(nil, `await page.getByRole('link', {name: 'report.fails', exact: true}).first().click()`)
	p.await("the timeline has failed runs", `return document.querySelectorAll('.line [data-state=failed]').length > 1`, nil)
	for _, text := range []string{"every hour at :", "Europe/Berlin", "anna@vm-1", "bert@vm-2", "exit code 3", "region", "stepping back"} {
		p.shows(text)
	}
	p.run(nil, `await page.locator('.line [data-state=failed]').last().click({position: {x: 2, y: 4}})`)
	p.await("the reason names the exit code", `return /exit code 3/.test(document.getElementById("why").innerText)`, nil)
	p.await("what it wrote is there", `return document.getElementById("why").innerText.includes("disk /var is full")`, nil)
}

func machines(t *testing.T, p *tab) {
	t.Helper()
	p.run(nil, `await page.getByRole('link', {name: 'Overview', exact: true}).click()`)
	p.run(nil, `
		const more = page.locator('#look').getByRole('button', {name: /and \d+ more/});
		const link = page.getByRole('link', {name: 'Which machine?', exact: true});
		await link.or(more).first().waitFor();
		if (!await link.isVisible()) await more.click();
		await link.click()`)
	for host, text := range map[string]string{"vm-1": "report.skips", "vm-2": "lead.drained", "vm-3": "+40s", "vm-4": "dora@vm-4 of lead.dead: seen "} {
		p.await(fmt.Sprintf("%s has %q", host, text), `return (document.querySelector('[data-host="' + arg[0] + '"]')?.innerText || "").includes(arg[1])`, []string{host, text})
	}
}

func health(t *testing.T, p *tab, verified string) {
	t.Helper()
	p.run(nil, `await page.getByRole('link', {name: 'Health', exact: true}).click()`)
	p.await("doctor's checks are there", `return document.querySelectorAll("[data-check]").length > 3`, nil)
	p.await("verify's answer is there", `return document.body.innerText.includes(arg)`, verified)
	p.shows("A crash")
	p.run(nil, `await page.evaluate(() => {
		const next = structuredClone(seen.health);
		next.doctor.checks.find(c => c.check === "clock").text = "an hour ahead";
		take("health", next);
	})`)
	p.await("a clock is shown as it was", `return /an hour ahead\s*before, since this page was opened/.test(document.querySelector('[data-check="clock"]').innerText)`, nil)
}

// The page is served below the path of another site by a proxy, and finds all that it needs there.
func TestThePageWorksBelowAPath(t *testing.T) {
	t.Parallel()
	s := serve(t, seeded(t), "--allow-actions")
	target, err := url.Parse(s.url)
	must(t, err)
	proxy := httptest.NewServer(http.StripPrefix("/ops/jobs", &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}))
	t.Cleanup(proxy.Close)
	p := open(t, proxy.URL+"/ops/jobs/", nil)
	p.await("the overview is there", `return document.querySelectorAll("[data-type]").length === arg`, len(shownOf))
	p.run(nil, `await page.getByRole('link', {name: 'report.done', exact: true}).first().click()`)
	p.await("the timeline is there", `return document.querySelectorAll('.line [data-state=done]').length > 1`, nil)
	p.run(nil, `await page.close()`) // before the proxy, which waits for its streams
}
