// Package cosmos keeps ledgers in a container of Azure Cosmos DB (API for NoSQL):
// [Open] makes a [store.Ledger] of a URI or of a connection string.
//
// # Items
//
// A record is one item, created once and never replaced. Its id is the worker
// type, a colon, and the Seq in 20 digits ([store.Key]), in the partition of its
// worker type (partition key /workerType); the other fields are those of
// [store.Record] in camelCase. Times are text, RFC 3339 in UTC with milliseconds,
// and absent where they are zero; a token that an IEEE double doesn't hold is
// written in decimal digits, so that all are exact. What must be unique rests on
// the id, which is unique within a partition; what is read in order, too. An item
// whose fields contradict its key is shown, with a Defect, where its key says.
//
// Items are obeyed by their envelope. A fault in it gives a Defect, also if a
// field occurs twice, a text is no UTF-8, or a time is finer than milliseconds;
// other fields that are missing, of a wrong type, given twice or too long are left
// out, and fields that this version doesn't know aren't asked for.
//
// # Guarantees
//
//   - [Ledger.Append] returns nil only when Azure has acknowledged the item: a
//     majority of the replicas of the write region has it, and with Strong
//     consistency the other regions, too (of three or more, a quorum).
//   - Of any number of appends to one key at most one returns nil.
//   - 408, 449 that doesn't end, 5xx, a lost connection, and a region that takes no
//     writes just now (403, substatus 3) are unknown: the record may be there, or
//     may land later. Read the key back.
//
// An operation ends with its context. Give each a deadline: throttled requests
// (429) are sent again after the wait that Azure names, ten times in all, as long
// as the wait fits in the deadline; else the error is a [store.ThrottledError], at
// once. A 449 is sent again after some milliseconds, and is unknown when that
// doesn't help. The SDK's own repetitions are turned off, but for reads that get
// 500, 502, 504, 408 or 404 with substatus 1002 (once), and requests that are sent
// to a region that doesn't take them (each second).
//
// Errors of an operation are of one line; those that list all that is wrong, be
// it with the options of [Open] or with a record to append, have a line for each.
// None shows a key. The SDK's error is in the chain, for errors.As, with its own
// text. What requests were charged is put on the receipt of the context
// ([store.WithReceipt]), that of failed ones, too.
//
// # Consistency
//
// Reads go to the write region, whatever the account's other regions are. Those of
// an account whose default consistency is Strong ask for it, and those of other
// accounts for the default: Azure refuses to read more strongly than that. What
// the defaults mean here, by Microsoft's documentation:
//
//   - Strong: reads see every acknowledged append.
//   - BoundedStaleness: so they do in the write region, where ours go.
//   - Session, ConsistentPrefix, Eventual: a read asks one replica, and may miss
//     appends of the last moments. The promise of [store.Ledger] that Tail and Get
//     see every acknowledged append isn't kept.
//
// Safety doesn't rest on that promise: who acts on a stale head appends to a key
// that is taken, and gets a conflict. A stale read could do harm only if it were
// behind by more than the engine's retention of records (2 h at least) less the
// hour in which a claim becomes void; replicas of one region are behind by
// milliseconds. What it costs is requests and, now and then, a slot: a claim of
// which only a conflict is known, and whose record isn't seen in time, isn't
// worked under. So no level is refused. [Account.Warning] tells of one that is
// weaker than BoundedStaleness, as leasectl does. Strong and BoundedStaleness
// double what reads are charged.
//
// # Accounts and containers that are refused
//
// Account and container are looked at before the first use, every ten minutes,
// and when requests fail as they do after a failover or a change. They are refused
// with [store.ErrRefused]
//
//   - if the account takes writes in several regions: each of them accepts the same
//     key, and of two who both got a lease one loses its record later, silently;
//   - if the account doesn't say whether it does, unless
//     Options.UnsafeUnverifiedAccount is set;
//   - if the container's partition key isn't /workerType, if it deletes items by
//     itself (a default time to live), if it has unique keys of its own, or if its
//     index isn't kept consistent.
//
// An operation waits a second for a look that is slow, and then goes on; while looks
// fail, the last one that didn't is believed for two hours. With
// UnsafeUnverifiedAccount, a container that may not be read isn't judged either.
//
// The look costs a read of the account, which isn't charged, and one of the
// container, on the receipt of the operation that gave rise to it. The SDK reads
// the account again every five minutes by itself, and what it is told then counts,
// too. Between two looks somebody with the rights of an administrator can still do
// damage.
//
// # Failover, and what it can lose
//
// While an account's write region changes, appends fail or wait; nothing is
// written while a lease runs, so a lease that is held goes on undisturbed. A
// failover that is planned (a change of the write region while all are up) loses
// nothing. One after the loss of a region loses, by Microsoft's documentation,
// nothing with Strong consistency, the last moments up to the configured staleness
// with BoundedStaleness, and up to some 15 minutes with the weaker ones. Records
// that are lost so are leases that somebody may be working under: until their
// windows end a second worker may get the same slot, with the same token if it
// began on the boundary. Where that can't be borne, use Strong consistency, with
// three regions or more, so that one of them may fail, or a single region: it is
// away when the region is, and loses nothing by that, unless it is lost for good and
// comes back from a backup, up to four hours old. [Account.Warning] tells of several
// regions without Strong. A restored backup is a ledger that lost its newest
// records in the same way: stop the workers first.
//
// A refused write has the SDK ask at once where writes go now, and reads follow.
// Who only reads may ask the region that took the writes before for five minutes
// more; without Strong consistency it may be behind.
//
// # Rights
//
// With a key there is nothing to grant, and everything is allowed. Better, use
// Microsoft Entra ID: a custom role of Azure Cosmos DB's own (data plane) with
//
//	Microsoft.DocumentDB/databaseAccounts/readMetadata
//	Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery
//	Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create
//	Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read
//	Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete
//
// assigned for the container or above. Without items/delete all works but
// trimming; replace and upsert aren't needed, and whoever hasn't got them can't
// overwrite a lease. Tokens don't create databases and containers: with them,
// [Ledger.Init] checks what is there, and what isn't must be made with the portal,
// az or a template, by this form (throughput as you like):
//
//	az cosmosdb sql container create --account-name A --resource-group R \
//	  --database-name WorkerProcess --name WorkerLeases --throughput 400 \
//	  --partition-key-path /workerType --partition-key-version 2 --idx '{
//	    "indexingMode": "consistent", "automatic": true,
//	    "includedPaths": [{"path": "/id/?"}, {"path": "/workerType/?"}],
//	    "excludedPaths": [{"path": "/*"}]}'
//
// A container with another index works as well: it costs more to append to, or, if
// /id isn't indexed, the tail fails with what Azure says to that.
//
// Requests are HTTPS to the account's host and to those of its regions, port 443,
// through the proxy of the environment, if there is one. A firewall that lets
// nobody in shows as [store.ErrDenied].
//
// # Time
//
// [Ledger.Tail] selects Azure's clock along with the records, as
// GetCurrentTimestamp(), in milliseconds and at no further request; [Ledger.Now]
// asks for it alone. A server that doesn't know the function refuses the query
// with 400. Then, and with the tail of an empty ledger, the Date header of that
// very reply is the stamp: whole seconds, and up to a second older than the reply,
// since HTTP servers renew it once a second. [Ledger.Append] tells the item's own
// _ts on the receipt: whole seconds, of which Microsoft doesn't say whether they are
// cut or rounded, so a second is allowed for on either side. So a stamp leaves the
// clock uncertain by
//
//	GetCurrentTimestamp   ± (skew + round trip / 2 + 0.5 ms)
//	Date                  ± (skew + round trip / 2 + 1 s)
//	_ts                   ± (skew + round trip / 2 + 1 s)
//
// where skew, Options.ServerSkew, is 250 ms by default. Front-ends and replicas
// read clocks of their own and can't be told apart, so that much is allowed between
// any two of them: an assumption, as nothing is published. A stamp's server is the
// host of the region that replied, so that a failover shows as a change of clocks
// (not if the account's properties may not be read). The cache of a dedicated gateway
// is passed by, and a reply whose two times contradict each other gives no stamp.
//
// A machine's own clock plays no part, however wrong it is: what is signed is
// dated by the account's time, from the second request on. Tokens of Microsoft
// Entra ID are another matter, since their age is measured by the machine.
//
// # Emulators
//
// On a loopback address, insecureHTTP=true and insecureSkipVerify=true in the URI
// admit emulators, with a key. Their account is taken to be at the address that was
// given, whatever it says of itself.
//
// # What was tested, and what wasn't
//
// The conformance suite runs against @vercel/cosmosdb-server, a stand-in of a
// single process, over HTTP, or against the account named in COSMOS_URI. What that
// can't show runs against a fake transport written to Microsoft's documentation of
// the REST API: throttling, 449, 408, failover, the account's properties,
// GetCurrentTimestamp, charges, and the status codes above.
//
// No real account was tested, nor Microsoft's emulator. So these are taken from
// documentation alone: that creates of one id are decided by one replica set, what
// the consistency levels give and what a failover loses, charges, the substatus of
// a missing container, that the Date header is at most a second old, how far the
// servers' clocks are apart, that GetCurrentTimestamp may stand beside ORDER BY in a
// query of one partition, that NOT ARRAY_CONTAINS is served through all partitions,
// and that the role above suffices.
package cosmos
