// Package etcdpeer gives tests an etcd server, of the program that is installed: Debian's
// etcd-server, or another on the PATH. Linux only.
//
// [Shared] is one server for all tests of the test binary, so each test must use keys of its own;
// [Start] starts one that a test may kill, pause and restart. It runs on a free port of the loopback
// interface, with its data in a temporary folder. It ends with the test binary, even when that is
// killed. The service that Debian starts doesn't matter.
//
// Nobody needs a password, until a test enables authentication on a server of its own. The server
// always syncs what it commits.
//
// Where the program is missing, tests are skipped. If the environment variable REQUIRE_STORES, a
// list separated by commas, contains "etcd", they fail instead.
package etcdpeer
