// Package history reads the records of a ledger as slots: who held each slot, when it
// was claimed, how the lease ended, and which slots nobody claimed.
//
// [Read] takes what [store.Ledger.Tail] returns:
//
//	records, stamp, err := ledger.Tail(ctx, "invoice-export", 100)
//	if err == nil && stamp.IsZero() { // The store doesn't read its clock along with a tail.
//		stamp, err = ledger.Now(ctx)
//	}
//	if err != nil {
//		return err
//	}
//	for _, e := range history.Read(records, stamp.Time, nil) {
//		fmt.Println(e.Slot, e.State, e.Record.InstanceID, e.Record.Token)
//	}
//
// The package is pure. It reads no clock and no store, changes no argument, and the
// same arguments always give the same entries.
//
// # Entries
//
// A slot has one [Entry] for each term that held it, in the order of the ledger. A term
// is what one claim began: its grant and all extensions of it, under one fencing token.
//
//   - Extensions within a slot (FailoverWithin) are part of the entry: Window reaches to
//     the end of the newest, and Extensions counts them.
//   - A lease that goes on over several slots (Continuous) has an entry for each slot,
//     all with the same token.
//   - A worker that takes over the rest of a slot has its own entry, with Takeover set.
//   - A slot that nobody claimed has an entry without a record. Four or more of these in
//     a row become one entry, which counts them.
//   - An override has its own entry, whose State is its kind, "override". The terms that it
//     ended are [Overridden].
//   - What came of the work ([Entry.Outcome]) is part of the entry of the term under which it was done,
//     whichever record says so. It has its own entry only if that term was not read.
//   - A record that workers refuse to obey or to follow (poison), and a record of a kind that this
//     version doesn't know, has its own entry.
//
// # Texts of others
//
// The texts of an entry are those of its records: labels, schedule, metadata, errors, and a kind that
// this version doesn't know, of which [Entry.Note] and State are made. Any program may have
// written them. A program that shows them on a terminal replaces control, bidirectional and
// invisible characters first, as leasectl does.
//
// # What a part of a ledger can't show
//
// Only the records that are passed in are read. The first entry may have begun before
// the oldest of them: Partial says so where it can be known. Read one entry more than
// needed, and drop the first. Slots before the oldest record are not shown as missed.
package history
