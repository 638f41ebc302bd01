// Package mysqlpeer gives tests a MariaDB server, of the programs that are installed: Debian's
// mariadb-server-core and mariadb-client-core, or others on the PATH. MySQL itself isn't run. Linux
// only.
//
// [Shared] is one server for all tests of the test binary, in which [Database] makes databases;
// [Start] starts one that a test may kill, pause and restart. It runs on a free port of the loopback
// interface, with its data in a temporary folder, as the user nobody if root runs the test. It ends
// with the test binary, even when that is killed.
//
// The superuser root needs no password. Others do: see [Role].
//
// Where the programs are missing, tests are skipped. If the environment variable REQUIRE_STORES, a
// list separated by commas, contains "mariadb", they fail instead.
package mysqlpeer
