// Package mongopeer gives tests a MongoDB server: the one named in the
// environment variable MONGODB_URI, or else a MongoDB-compatible peer
// (FerretDB on SQLite) that it builds and starts by itself.
//
// The peer is a small program in a module of its own, in the folder server, so
// that its 120 dependencies never reach this module. It is built once, which
// takes one or two minutes, and kept in the user's cache folder; several test
// binaries that want it at once wait for one build. It runs as a process of its
// own, on a free port of the loopback interface, with its data in a temporary
// folder. It ends with the test binary, even when that is killed: the peer
// watches a pipe whose other end the test binary holds.
//
// Where no peer can be had (no Go command, no network for the first build, or
// this package used from the module cache, which doesn't contain nested
// modules), tests are skipped. If the environment variable REQUIRE_STORES, a
// list separated by commas, contains "mongo", they fail instead.
//
// # What the peer can't show
//
// Inserts are atomic and durable as in MongoDB, and that is what a ledger
// needs. It is one standalone server: there are no elections, no rollbacks, no
// stale secondaries, and majority means nothing. Its conditional updates are not
// atomic. A sorted find scans the collection, so collections should stay small,
// and its speed says nothing about MongoDB's.
package mongopeer
