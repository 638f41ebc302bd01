// Package promtest has only tests: it lets a real Prometheus scrape worker processes, one by promlease and one by
// otellease and OpenTelemetry's exporter, kills the holder, and sees the alerts of docs/ fire and end. It is a module of
// its own, so that the exporter never reaches users.
//
// It needs Debian's package prometheus; its service isn't used. Without it the tests are skipped, and say so, or fail if the
// environment variable REQUIRE_PROMETHEUS is set. All traffic stays on the loopback interface, and all files
// are in temporary folders.
package promtest
