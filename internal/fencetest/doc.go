// Package fencetest has only tests: it runs sqlfence against PostgreSQL and MariaDB, and
// stops real holders of leases, to see that their late writes are refused. It is a module
// of its own, so that its drivers never reach users.
//
// Each test binary starts fresh servers, in a temporary folder, on a Unix socket there, as
// an unprivileged user. They need Debian's postgresql,
// mariadb-server-core and mariadb-client-core. Where a
// server's programs are missing, its tests are skipped, and say so; if the environment
// variable REQUIRE_STORES, a list separated by commas, contains "postgres" or "mariadb",
// they fail. MySQL itself isn't run.
package fencetest
