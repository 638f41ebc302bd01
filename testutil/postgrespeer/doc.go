// Package postgrespeer gives tests a PostgreSQL server, of the programs that are installed:
// Debian's postgresql, or others on the PATH. Linux only.
//
// [Shared] is one server for all tests of the test binary, in which [Database] makes databases;
// [Start] starts one that a test may kill, pause and restart. It runs on a free port of the loopback
// interface, with its data in a temporary folder, as the user nobody if root runs the test. It ends
// with the test binary, even when that is killed. The service that Debian starts doesn't matter.
//
// [Options].Follows makes a server the standby of another, and [Pooler] puts a PgBouncer before one, of Debian's
// package pgbouncer.
//
// The superuser postgres needs no password. Others do: see [Role].
//
// Where the programs are missing, tests are skipped. If the environment variable REQUIRE_STORES, a
// list separated by commas, contains "postgres", they fail instead.
package postgrespeer
