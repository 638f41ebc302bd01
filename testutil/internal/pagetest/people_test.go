package pagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// visits are the addresses at which each view is looked at, and what is there once it is drawn.
var visits = []struct{ name, hash, ready string }{
	{"overview", "#/", `return document.querySelectorAll("[data-type]").length === 13`},
	{"a reason", "#/?type=report.fails&at=AT", `return /exit code 3/.test(document.getElementById("why").innerText)`},
	{"one type", "#/type/report.fails", `return document.querySelectorAll(".line [data-state=failed]").length > 1 && /bert@vm-2/.test(document.body.innerText)`},
	{"a leader", "#/type/lead.dead", `return document.querySelectorAll(".line [data-state]").length > 1`},
	{"hostile", "#/type/zz.hostile", `return document.querySelectorAll(".line [data-state=failed]").length > 1`},
	{"machines", "#/machines", `return document.querySelectorAll("[data-host]").length > 3`},
	{"health", "#/health", `return document.querySelectorAll("[data-check]").length > 3 && /of 13 worker types/.test(document.body.innerText)`},
}

// visit opens a view, and waits until it is drawn.
func visit(t *testing.T, p *tab, hash, ready string) {
	t.Helper()
	p.run(nil, `await page.evaluate((hash) => { location.hash = hash; }, args[0].replace('AT', new Date(Date.now() - 30 * 60000).toISOString()))`, hash)
	p.await(hash+" is drawn", ready, nil)
}

// What is new is drawn once the button is up: it would take the place of the one that was pressed, and neither would be clicked.
func TestAClickHoldsWhatIsPressed(t *testing.T) {
	t.Parallel()
	s := serve(t, seeded(t), "--allow-actions")
	p := screen(t, s.url, 1280, 900, "light")
	visit(t, p, "#/type/report.fails", `return !!document.querySelector('[data-action=pause]')`)
	p.run(nil, `
		await page.locator('[data-action=pause]').hover();
		await page.mouse.down();
		await page.evaluate(() => new Promise((drawn) => {
			for (let e = document.querySelector('[data-action=pause]'); e; e = e.parentElement) if ('sig' in e) e.sig = 'other';
			draw();
			setTimeout(drawn, 200);
		}));
		await page.mouse.up();
		await page.locator('#act-go').waitFor();
		await page.waitForFunction(() => [...document.querySelectorAll('main, main *')].every((e) => e.sig !== 'other'));`)
}

// screen opens the page on a screen of a width, in a scheme of colours.
func screen(t *testing.T, url string, width, height int, scheme string) *tab {
	t.Helper()
	return open(t, url, look{"viewport": map[string]int{"width": width, "height": height}, "colorScheme": scheme, "reducedMotion": "reduce"})
}

// No view has a fault that axe-core calls serious or critical, in light and dark, with what opens in it.
func TestAxeFindsNothingSerious(t *testing.T) {
	t.Parallel()
	s := serve(t, seeded(t), "--allow-actions")
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			p := screen(t, s.url, 1280, 900, scheme)
			for _, v := range visits {
				visit(t, p, v.hash, v.ready)
				axe(t, p, v.name)
			}
			p.run(nil, `await page.evaluate(() => { location.hash = '#/type/report.fails'; }); await page.locator('[data-action=pause]').click(); await page.locator('#act-go').waitFor()`)
			axe(t, p, "an order")
		})
	}
}

// axe demands that axe-core finds nothing serious.
func axe(t *testing.T, p *tab, what string) {
	t.Helper()
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	p.run(&found, `
		if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(axe.source);
		const {violations} = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
		return violations.map(({id, impact, help, nodes}) => ({id, impact, help, nodes: nodes.slice(0, 3).map((n) => ({html: n.html.slice(0, 200), failureSummary: n.failureSummary}))}))`)
	for _, f := range found {
		text := fmt.Sprintf("%s: %s (%s): %s: %+v", what, f.ID, f.Impact, f.Help, f.Nodes)
		if f.Impact == "serious" || f.Impact == "critical" {
			t.Error(text)
		} else {
			t.Log(text)
		}
	}
}

// Nothing is wider than the screen, from a phone to a wall. With SHOTS=DIR, pictures of all views are left there.
func TestNoScreenScrollsSideways(t *testing.T) {
	t.Parallel()
	s := serve(t, seeded(t), "--allow-actions")
	for _, c := range []struct {
		width, height int
		scheme        string
	}{{360, 740, "light"}, {360, 740, "dark"}, {1280, 900, "light"}, {1280, 900, "dark"}, {2560, 1440, "light"}, {2560, 1440, "dark"}} {
		shots := os.Getenv("SHOTS")
		if shots == "" && c.scheme == "dark" {
			continue
		}
		t.Run(fmt.Sprintf("%d %s", c.width, c.scheme), func(t *testing.T) {
			t.Parallel()
			p := screen(t, s.url, c.width, c.height, c.scheme)
			for _, v := range visits {
				visit(t, p, v.hash, v.ready)
				var wide struct {
					Page, Screen int
					Widest       string
				}
				p.run(&wide, `return page.evaluate(() => {
					const all = [...document.querySelectorAll('body *')].filter((e) => e.getClientRects().length && !e.closest('svg, pre, .sr, .skip, .wrap > *'));
					const past = all.filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
					return {page: document.documentElement.scrollWidth, screen: document.documentElement.clientWidth, widest: past.slice(-3).map((e) => e.outerHTML.slice(0, 150)).join(' … ')};
				})`)
				if wide.Page > wide.Screen {
					t.Errorf("%s is %d pixels wide on a screen of %d, because of %s", v.name, wide.Page, wide.Screen, wide.Widest)
				}
				if shots != "" {
					p.run(nil, `await page.screenshot({path: args[0], fullPage: args[1]})`, filepath.Join(shots, fmt.Sprintf("%s-%d-%s.png", strings.ReplaceAll(v.name, " ", "-"), c.width, c.scheme)), v.name != "a reason")
				}
			}
		})
	}
}

// Without a pointer, each view is reached, a slot is chosen and its reason read; what has the focus is always seen.
func TestTheKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	s := serve(t, seeded(t), "--allow-actions")
	p := open(t, s.url, nil)
	p.await("the overview is there", visits[0].ready, nil)
	press := func(keys ...string) {
		t.Helper()
		p.run(nil, `for (const key of args) await page.keyboard.press(key)`, func() (all []any) {
			for _, k := range keys {
				all = append(all, k)
			}
			return all
		}()...)
	}
	// tabTo presses Tab until an element has the focus, and wants to see each one on the way.
	tabTo := func(selector string) {
		t.Helper()
		var hidden []string
		p.run(&hidden, `
			const hidden = [];
			for (let i = 0; i < 400; i++) {
				await page.keyboard.press('Tab');
				const at = await page.evaluate((selector) => {
					const e = document.activeElement, style = getComputedStyle(e), area = e.getBoundingClientRect();
					const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1 && area.width > 0 && area.right > 0 && area.bottom > 0 && area.top < innerHeight;
					return {is: e.matches(selector), fault: e === document.body || seen ? '' : e.outerHTML.slice(0, 150)};
				}, args[0]);
				if (at.fault) hidden.push(at.fault);
				if (at.is) return hidden;
			}
			throw new Error('Tab never comes to ' + args[0])`, selector)
		for _, h := range hidden {
			t.Errorf("on the way to %s the focus isn't seen on %s", selector, h)
		}
	}
	tabTo(`[data-focus="strip report.fails"]`)
	press("ArrowLeft", "ArrowLeft")
	press("Enter")
	p.await("the reason is shown", `return /exit code 3/.test(document.getElementById("why").innerText) && document.getElementById("why").contains(document.activeElement)`, nil)
	press("Escape")
	p.await("the focus is where it was", `return document.getElementById("why").hidden && document.activeElement.dataset.focus === "strip report.fails"`, nil)
	press("/")
	p.run(nil, `await page.keyboard.type('lead.pau')`)
	p.await("one row is left", `return document.querySelectorAll("[data-type]").length === 1`, nil)
	tabTo(`.row [data-focus="type lead.paused"]`)
	press("Enter")
	p.await("the type is shown", `return document.querySelectorAll(".line [data-state]").length > 1`, nil)
	tabTo(".line")
	press("ArrowLeft", "+", "-", "Enter")
	p.await("the reason is shown", `return !document.getElementById("why").hidden && document.querySelectorAll("#why .say").length > 0`, nil) // What is hidden is the one before.
	press("Escape")
	p.await("the reason is gone", `return document.getElementById("why").hidden`, nil)
	tabTo("[data-action=pause]")
	press("Enter")
	p.await("the order's fields are there", `return document.getElementById("act").contains(document.activeElement)`, nil)
	press("Escape")
	p.await("the order is gone, and its button has the focus", `return !document.getElementById("act").open && document.activeElement.dataset.action === "pause"`, nil)
	p.run(nil, `await page.evaluate(() => { document.activeElement.blur(); })`)
	for _, to := range []string{"machines", "health", "overview"} {
		tabTo("[data-nav=" + to + "]")
		press("Enter")
		p.await(to+" is shown", `return document.body.dataset.view === arg`, to)
	}
}

// Whatever stands in a ledger is shown as text: no script runs, no element appears, no character hides or turns others.
func TestWhatStandsInALedgerIsOnlyText(t *testing.T) {
	t.Parallel()
	s := serve(t, seeded(t), "--allow-actions")
	p := open(t, s.url, nil)
	for _, v := range append(visits, struct{ name, hash, ready string }{"its reason", "#/type/zz.hostile?at=AT", `return document.querySelectorAll("#why .say").length > 0 && document.getElementById("why").innerText.includes("<script>")`}) {
		visit(t, p, v.hash, v.ready)
		p.run(nil, `await page.evaluate(() => { for (const d of document.querySelectorAll('details')) d.open = true; })`)
		var found []string
		p.run(&found, `return page.evaluate(() => {
			const found = [];
			const note = (what, e) => found.push(what + ': ' + (e.outerHTML || e).slice(0, 200));
			for (const e of document.querySelectorAll('img, iframe, object, embed, link:not([rel=icon]), base, meta[http-equiv], b, script:not(:last-of-type)')) note('element', e);
			if (document.scripts.length !== 1) note('scripts', document.body);
			const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;
			for (const e of document.querySelectorAll('*')) for (const a of e.attributes) {
				if (/^on/i.test(a.name) || /^\s*javascript:/i.test(a.value)) note('handler', e);
				if (odd.test(a.value)) note('attribute', e);
			}
			const text = document.body.innerText + document.title;
			if (odd.test(text)) note('text', JSON.stringify(text.slice(Math.max(0, text.search(odd) - 50)).slice(0, 100)));
			return found;
		})`)
		for _, f := range found {
			t.Errorf("%s: %s", v.name, f)
		}
	}
	if !strings.Contains(p.text("body"), "<script>alert(1)</script>") {
		t.Error("the page doesn't show the markup as text")
	}
}
