// Package fencetest has only tests: it runs sqlfence against PostgreSQL and MariaDB, and
// stops real holders of leases, to see that their late writes are refused. It is a module
// of its own, so that its drivers never reach users.
//
// The servers are those of testutil/postgrespeer and testutil/mysqlpeer, which say what they need.
package fencetest
