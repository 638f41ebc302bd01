// Package move takes a worker type from one store to another, so that no two workers hold its lease, whichever store
// they use: [Move] pauses it, copies the newest records, waits until nobody holds the lease on the first store, and
// resumes it on the second.
//
// Its pauses are orders like any other, which workers obey that know nothing of moves. Their Target has the id of the move and
// what the store is in it: see store.Order.Move. The second store is paused first, right above the record by which it was
// compared, so that a claim there that is under way is lost. When the lease has ended, the first store is marked as left by an
// append right above the newest record that was copied. Before that, the move can be given up, or another move can take its
// place; after that, only the pause on the second store is to be ended, whatever is appended to either one meanwhile.
package move
