// Package natspeer gives tests a NATS server with JetStream, of its own Go module. It is built when it is first needed, in the
// user's cache folder.
//
// [Shared] is one server for all tests of the test binary, so each test must use a bucket of its own; [Start] starts one that a
// test may kill, pause and restart, and [Cluster] three that elect a leader for each bucket. They run on free ports of the loopback
// interface, with their data in temporary folders, and end with the test binary, even when that is killed.
//
// Where it can't be had, tests are skipped. If the environment variable REQUIRE_STORES, a list separated by commas, contains
// "nats", they fail instead.
package natspeer
