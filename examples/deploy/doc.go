// Package deploy holds the tests of the manifests beside it. Each is parsed strictly, each command line of leasectl in it is
// run on a SQLite ledger, and what systemd-analyze, helm and an API server can say of it, they are asked. README.md has
// what no test here can show.
package deploy
