// Package examples holds whole programs to copy from, one in each folder, and a test that
// runs them all. Short examples are in the documentation of package workerlease.
//
//   - leader elects a leader, and shows whom each node sees leading.
//   - outbox passes the fencing token to a resource that refuses late writes.
//   - webapp is a web service with a leased background job and probes.
//   - cronjob runs jobs of github.com/robfig/cron on one node at a time.
//   - gocron is a Locker and an Elector for github.com/go-co-op/gocron, in its own module.
//   - beside runs jobs and leaders beside those of other locks, while a fleet moves, in its own module.
//   - deploy has units of systemd and manifests for leasectl.
//   - mongo and cosmos use a real store, with credentials from the environment.
//
// Those with a test show how such a program is tested, in no time.
package examples
