// Package redispeer gives tests a Redis server, of the program that is installed: Debian's
// redis-server, or another on the PATH. Linux only.
//
// [Shared] is one server for all tests of the test binary, so each test must use keys of its own;
// [Start] starts one that a test may kill, pause and restart. It runs on a free port of the loopback
// interface, with its data in a temporary folder. It ends with the test binary, even when that is
// killed. The service that Debian starts doesn't matter.
//
// The user default needs no password and may do anything. Other users are made by ACL SETUSER.
//
// Where the program is missing, tests are skipped. If the environment variable REQUIRE_STORES, a
// list separated by commas, contains "redis", they fail instead.
package redispeer
