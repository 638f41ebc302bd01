// Package storekit is what stores are made of: those of this module that have a server, and yours.
//
// # What a store is
//
// A store needs a service with one atomic operation: insert unless the key exists. It must be durable when it is
// acknowledged, reads must see whatever was acknowledged before, and the service must have a clock. Without any of that,
// don't write one.
//
// # How to write one
//
//  1. Choose what the kit does for you. A service of named objects becomes an [Objects], of which [OnObjects] makes a
//     whole ledger; the example is such a store. [OnBucket] is that for services such as Amazon's S3.
//     For any other, write the methods of [store.Ledger], each around [Run], with [Encode] and [Decode] for records
//     and [EncodePresences] and [DecodePresence] for presences: they are strict with what leases depend on.
//  2. Let a [Runner] perform all operations. They then end with their context, and with Close, whatever the driver does,
//     and their errors have one line, no secret, and a sentinel of package store. A driver whose own errors say what it
//     waited for gets a Grace to say so.
//  3. Say by a [Meaning] what the driver's errors mean, by their exact codes. The rule for appends is: unknown unless
//     the server surely stored nothing. The zero Meaning is that. Say store.ErrConflict only of a reply which says that
//     the key exists, and [NotStored] only of what was never sent, or was refused. Mind the driver: a write
//     that it repeats by itself may have been stored by the first try.
//  4. Refuse by a [Fitness] what would break the contract: a store that forgets, expires or reorders records, or that
//     answers with old ones. A [Flaw] says what is wrong and what to do. [Checks] is a table of what is found out, and how: what
//     Examine says, what is refused, and what Warning says follow from it.
//  5. Give stamps that are honest: made between the call and the return, with the clock's granularity, and with a Skew for
//     all servers that may answer. [Dates] makes them of HTTP's Date, and [Dating] dates requests by it, so that
//     a machine whose clock is wrong can log in. Take time from nothing but the clock in your Options.
//  6. Read URIs by [DatabaseURI] or [Parameters], so that all faults are told at once and no secret is shown, and
//     make connections that end with the ledger: by [NewHTTPClient], [DialUntil], or [Runner.Life].
//  7. Run testutil/storetest on a real server: Run for the contract, RunPeer for a server that dies, pauses and comes
//     back, and ProcessRace for appends of many processes to one key. A store that wasn't shown by a real server to keep
//     records through its death doesn't keep them.
//
// [store.Register] lets [store.Open] find it.
package storekit
