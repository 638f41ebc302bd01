// Package late shows that fences refuse the late writes of real processes. Holders of a lease are stopped
// with SIGSTOP past the ends of their windows, and write when they go on: to SQLite, and to a PostgreSQL
// server of the test's own. And transactions of two holders are interleaved there at each isolation
// level.
//
// The package has only tests:
//
//	go test -v ./late -rounds 50
package late
