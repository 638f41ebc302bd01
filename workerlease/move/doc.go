// Package move takes a worker type from one store to another, so that no two workers hold its lease, whichever store
// they use: [Move] pauses it, copies the newest records, waits until nobody holds the lease on the first store, and
// resumes it on the second.
package move
