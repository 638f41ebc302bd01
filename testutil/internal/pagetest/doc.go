// Package pagetest shows the page of leasectl serve in a real browser: each view on ledgers of several stores, from a
// missed slot to its reason, live changes, orders with and without rights, the keyboard alone, accessibility, hostile
// content, and how much it draws in which time.
//
// It needs Debian's chromium, and Node.js 20 or newer with npm, from which it takes playwright-core and axe-core by the
// lockfile in the folder server. Where they are missing its tests are skipped; with REQUIRE_BROWSER=1 they fail. make page
// runs them.
package pagetest
