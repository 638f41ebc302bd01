// Drives a browser for Go tests: it reads a request a line as JSON, and answers each with a line. It ends, and the browser
// with it, when its input does.
//
//   {"id", "open": {"url", "context"}, "tab"}   opens a tab in a context of its own
//   {"id", "run": "JavaScript", "args", "tab"}            runs it with page, context, axe, faults and args
//   {"id", "close": true, "tab"}                          closes the tab, and answers what went wrong in it
'use strict';
const {chromium} = require('playwright-core');
const axe = require('axe-core');
const readline = require('node:readline');

const AsyncFunction = (async () => {}).constructor;
const tabs = new Map();

async function open(browser, name, {url, context: options}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults = [];
  page.on('pageerror', (e) => faults.push(`exception: ${e.stack || e}`));
  page.on('dialog', (d) => { faults.push(`dialog: ${d.message()}`); d.dismiss().catch(() => {}); });
  page.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') faults.push(`console: ${m.text()}`); });
  let origin; // that of the first page, where all others have to come from
  page.on('request', (r) => {
    const to = new URL(r.url());
    if (to.protocol !== 'data:' && to.origin !== (origin ??= to.origin)) faults.push(`request: ${r.url()}`);
  });
  tabs.set(name, {context, page, faults});
  await page.goto(url);
}

async function answer(browser, q) {
  if (q.open) return open(browser, q.tab, q.open);
  const {context, page, faults} = tabs.get(q.tab);
  if (q.close) {
    tabs.delete(q.tab);
    await context.close();
    return faults;
  }
  return new AsyncFunction('page', 'context', 'axe', 'faults', 'args', q.run)(page, context, axe, faults, q.args ?? {});
}

async function main() {
  const browser = await chromium.launch({
    executablePath: process.argv[2],
    // As root there is no sandbox, and /dev/shm is small in containers. Measures of memory need a collection.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--js-flags=--expose-gc', '--enable-precise-memory-info'],
  });
  process.stdout.write(JSON.stringify({id: 0, value: browser.version()}) + '\n');
  const lines = readline.createInterface({input: process.stdin});
  lines.on('line', (line) => {
    const q = JSON.parse(line);
    answer(browser, q).then((value) => ({id: q.id, value: value ?? null}), (e) => ({id: q.id, error: String(e?.message ?? e)}))
      .then((a) => process.stdout.write(JSON.stringify(a) + '\n'));
  });
  lines.on('close', () => browser.close().finally(() => process.exit(0)));
}

main().catch((e) => { process.stderr.write(`${e?.stack ?? e}\n`); process.exit(1); });
