// Package cosmos keeps ledgers in a container of Azure Cosmos DB (API for NoSQL):
// [Open] makes a [store.Ledger] from a URI or a connection string.
//
// # Items
//
// A record is one item, created once and never replaced. Its id is the worker type,
// a colon, and the Seq in 20 digits ([store.Key]), and its partition is the worker
// type (partition key /workerType). The other fields are those of [store.Record] in
// camelCase. Times are text, RFC 3339 in UTC with milliseconds; a zero time is left
// out. A token that an IEEE double doesn't hold is written as decimal digits, so all
// tokens are exact. Uniqueness and order rest on the id, which is unique within a
// partition. An item whose fields contradict its key appears at its key, with a
// Defect.
//
// Readers obey an item by its envelope. A fault in the envelope gives a Defect; so do
// a field that occurs twice, text that isn't UTF-8, and a time finer than
// milliseconds. Other fields that are missing, of a wrong type, given twice or too
// long come back empty, and fields that this version doesn't know aren't requested.
//
// # Guarantees
//
//   - [Ledger.Append] returns nil only when Azure has acknowledged the item: a
//     majority of the replicas of the write region has it. With Strong consistency,
//     so have the other regions (a quorum if there are three or more).
//   - Of any number of appends to one key, at most one returns nil.
//   - After a 408, a persistent 449, a 5xx, a lost connection, or a region that
//     doesn't take writes at the moment (403, substatus 3), the outcome is unknown:
//     the record may be stored, now or later. Read the key back.
//   - An error that came before anything was sent, such as that of a check of account and
//     container, matches [store.ErrNotStored], too.
//
// An operation ends with its context. Give each one a deadline. A throttled request
// (429) is sent again after the wait that Azure names, up to ten times in all, while
// the wait fits in the deadline; otherwise the operation returns a
// [store.ThrottledError] at once. A 449 is sent again after some milliseconds; if it
// persists, the outcome is unknown. The SDK's own retries are off, except for reads
// that get 500, 502, 504, 408, or 404 with substatus 1002 (once), and for requests
// sent to a region that doesn't take them (once a second).
//
// The error of an operation is one line. An error that lists all faults of options
// or of a record has one line per fault. No error shows a key. The SDK's error is in
// the chain, for errors.As, with its own text. The charge of each request, failed
// ones included, is put on the receipt of the context ([store.WithReceipt]).
//
// # Consistency
//
// Reads go to the write region, whatever other regions the account has. If the
// account's default consistency is Strong, they ask for Strong, otherwise for the
// default: Azure refuses to read more strongly than that. According to Microsoft's
// documentation, the defaults mean:
//
//   - Strong: reads see every acknowledged append.
//   - BoundedStaleness: the same in the write region, where reads go.
//   - Session, ConsistentPrefix, Eventual: a read asks one replica and may miss the
//     appends of the last moments. This breaks the promise of [store.Ledger] that
//     Tail and Get see every acknowledged append.
//
// Safety doesn't rest on that promise: an append after a stale read finds its key
// taken and gets a conflict. A stale read could do harm only if it were older than
// the engine's retention of records (at least 2 h) less the hour after which a claim
// is void; replicas of one region lag by milliseconds. Stale reads cost requests
// and, now and then, a slot: a worker that knows only of a conflict, and doesn't see
// its own record in time, doesn't work under that claim. So no level is refused.
// [Account.Warning] reports a level weaker than BoundedStaleness, as leasectl does.
// Strong and BoundedStaleness double the charge of reads.
//
// # Accounts and containers that are refused
//
// The account and the container are checked before the first use, every ten minutes,
// and when requests fail as they do after a failover or a change. They are refused
// with [store.ErrRefused]
//
//   - if the account takes writes in several regions: each of them accepts the same
//     key, and of two workers that both got a lease one loses its record later,
//     silently;
//   - if the account doesn't say whether it does, unless
//     Options.UnsafeUnverifiedAccount is set, or the URI has
//     unsafeUnverifiedAccount=true;
//   - if the container's partition key isn't /workerType, if it has a default time to
//     live, if it has its own unique keys, or if its index isn't consistent.
//
// An operation waits at most a second for a slow check and then continues. While
// checks fail, the last successful one counts for two hours. With
// UnsafeUnverifiedAccount, a container that may not be read isn't checked either.
//
// A check costs one read of the account, which is free, and one of the container,
// which goes on the receipt of the operation that caused it. The SDK also reads the
// account every five minutes, and its findings count, too. Between two checks, an
// administrator can still do damage.
//
// # Failover, and what it can lose
//
// While an account's write region changes, appends fail or wait. A worker that holds
// a lease needs no write to keep it, and continues undisturbed. A planned failover
// (a change of the write region while all regions are up) loses nothing.
//
// A failover after the loss of a region loses, by Microsoft's documentation, nothing
// with Strong consistency; the last moments, up to the configured staleness, with
// BoundedStaleness; and up to about 15 minutes with the weaker levels. The lost
// records include leases that workers may be working under: until their windows end,
// a second worker may get the same slot, with the same token if it began on the
// boundary. If you can't accept that, use one of these:
//
//   - Strong consistency with at least three regions, so that one of them may fail.
//   - A single region. The store is down while the region is, and loses nothing,
//     unless the region is lost for good and restored from a backup that is up to
//     four hours old.
//
// [Account.Warning] reports several regions without Strong. A restored backup is also
// a ledger that lost its newest records: stop the workers first.
//
// When a write is refused, the SDK at once asks for the current write region, and
// reads follow. A process that only reads may use the former write region for five
// more minutes; without Strong consistency its answers may be old.
//
// # Per-partition automatic failover
//
// With this option of an account, Azure moves the writes of single partitions to
// another region when theirs fails, and back later. The account's write region stays
// what it is. All records of a worker type are in one partition.
//
// Azure's SDK for Go doesn't follow a partition ([Microsoft's list] names .NET, Java,
// Python and Node.js). So while the partition of a worker type has failed over, the
// account's write region refuses its appends (403, substatus 3), and their outcome is
// unknown. Leases in force go on, no new ones are granted, and work resumes with the
// first append after the partition has come back. Worker types in other partitions
// don't notice.
//
//   - A single write region is still required, and still enough: at any time, one region
//     takes the writes of a partition, and keys are unique there.
//   - With Strong consistency nothing is lost. With the weaker levels, a partition may
//     lose its last moments on the way, as an account does in a failover, and then two
//     workers may hold one slot. (Azure doesn't support BoundedStaleness with it yet.)
//   - Reads go to the account's write region, too. Without Strong consistency they may be
//     older than what programs with another SDK have written meanwhile. An append after
//     such a read is refused, or finds its key taken.
//   - The clock is that of whichever region replies, as in any failover: see Time.
//
// [Account.PartitionFailover] and [Account.Warning] report the option. Turn it off,
// unless other programs on the account need it.
//
// # Rights
//
// A key allows everything and needs no grant. Better, use Microsoft Entra ID: a
// custom role of Azure Cosmos DB (data plane) with
//
//	Microsoft.DocumentDB/databaseAccounts/readMetadata
//	Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery
//	Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create
//	Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read
//	Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete
//
// assigned for the container or above. Without items/delete, everything works except
// trimming. Replace and upsert aren't needed, and a worker without them can't
// overwrite a lease. Tokens can't create databases and containers: with them,
// [Ledger.Init] only checks an existing container. Create it with the portal, az or
// a template, in this form (choose your own throughput):
//
//	az cosmosdb sql container create --account-name A --resource-group R \
//	  --database-name WorkerProcess --name WorkerLeases --throughput 400 \
//	  --partition-key-path /workerType --partition-key-version 2 --idx '{
//	    "indexingMode": "consistent", "automatic": true,
//	    "includedPaths": [{"path": "/id/?"}, {"path": "/workerType/?"}],
//	    "excludedPaths": [{"path": "/*"}]}'
//
// A container with another index works as well, but appends cost more, and if /id
// isn't indexed, Tail fails with Azure's error.
//
// Requests are HTTPS to port 443 of the account's host and the hosts of its regions,
// through the proxy of the environment, if there is one. A firewall that blocks the
// caller gives [store.ErrDenied].
//
// # The roster
//
// The container <container>-roster, WorkerLeases-roster by default, keeps who is there: one item for each
// worker, which each Attend replaces. Its id is the worker type, a colon, and the ID, and its partition the
// worker type. The other fields are those of [store.Presence] by their names in JSON, with labels as a list of
// name and value. Durations are exact below 104 days, and else to the microsecond, as doubles are.
//
// [Ledger.Init] creates it with a key, and without throughput of its own: it shares that of the database, if
// it has some; in a serverless account it costs what is used, and else Azure bills its least for a container,
// 400 RU/s. So give the database a throughput that both containers share, or don't create the roster: without
// it nothing else changes. It is empty then, and Attend returns [store.ErrMissing].
//
// Each presence that is attended is one upsert, eight at a time, each that leaves is one deletion, and each
// listing is one query, or with an empty worker type one through all partitions. A presence has about 1 KB.
// Microsoft's figure is [4.95 RU for a write of 1 KB]; one that replaces an item may cost twice as much. The
// peer of the tests charges 1 for everything. It all goes on receipts, as for the ledger.
//
// With Microsoft Entra ID, its rights are those above, and items/upsert to attend. Assign that for this
// container alone, or else a worker could overwrite a lease. An operation without its right gets
// [store.ErrDenied], and nothing else changes. Create the container as above, with its own name.
//
// # Time
//
// [Ledger.Tail] selects Azure's clock along with the records, as
// GetCurrentTimestamp(), in milliseconds and without another request; [Ledger.Now]
// asks for it alone. A server that doesn't know the function refuses the query with
// 400. Then, and for the tail of an empty ledger, the stamp is the Date header of the
// reply. It has whole seconds and is up to a second older than the reply, because
// HTTP servers renew it once a second. [Ledger.Append] reports the item's own _ts on
// the receipt. It has whole seconds, too, and Microsoft doesn't document whether they
// are truncated or rounded, so a second is allowed on either side. The uncertainty of
// the clock after one stamp is
//
//	GetCurrentTimestamp   ± (skew + round trip / 2 + 0.5 ms)
//	Date                  ± (skew + round trip / 2 + 1 s)
//	_ts                   ± (skew + round trip / 2 + 1 s)
//
// The skew, Options.ServerSkew or serverSkew in the URI, is 250 ms by default.
// Front-ends and replicas have their own clocks and can't be identified, so that much
// is allowed between any two of them, in one region or in several. It is an
// assumption, because no figure is published. A stamp's server is the host of the
// region that replied, for logs only: reads may be answered by one region and appends
// by another, or each by both in turn. As long as their clocks differ by no more than
// the skew, that neither makes the time less certain nor costs a request. If they
// differ by more than twice the skew and the round trip, it is taken for a clock that
// jumps. Requests bypass the cache of a dedicated gateway. A reply with two times that
// contradict each other gives no stamp.
//
// A machine's own clock doesn't matter, however wrong it is: from the second request
// on, signatures are dated by the account's time. Tokens of Microsoft Entra ID are an
// exception, because the machine measures their age.
//
// # Emulators
//
// On a loopback address, insecureHTTP=true and insecureSkipVerify=true in the URI
// allow emulators, with a key. The account is then taken to be at the given address,
// whatever it says about itself.
//
// # What was tested, and what wasn't
//
// The conformance suite runs against @vercel/cosmosdb-server, a stand-in with a
// single process, over HTTP, or against the account named in COSMOS_URI. The rest is
// tested with a fake transport written after Microsoft's documentation of the REST
// API: throttling, 449, 408, failover of the account and of single partitions, regions
// whose clocks differ, the account's properties, GetCurrentTimestamp, charges, and the
// status codes above.
//
// Neither a real account nor Microsoft's emulator was tested. So the following rests
// on documentation alone:
//
//   - creates of one id are decided by one replica set;
//   - the consistency levels, and the losses of a failover;
//   - how a partition that has failed over refuses appends;
//   - charges, and the substatus of a missing container;
//   - the Date header is at most a second old, and the skew of the servers' clocks;
//   - GetCurrentTimestamp may be combined with ORDER BY in a query of one partition;
//   - NOT ARRAY_CONTAINS works across partitions;
//   - the role above suffices, and what the roster's container gets without throughput of its own.
//
// [4.95 RU for a write of 1 KB]: https://learn.microsoft.com/azure/cosmos-db/understand-request-unit-consumption
// [Microsoft's list]: https://learn.microsoft.com/azure/cosmos-db/how-to-configure-per-partition-automatic-failover
package cosmos
