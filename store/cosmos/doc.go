// Package cosmos keeps ledgers in a container of Azure Cosmos DB (API for NoSQL):
// [Open] makes a [store.Ledger] from a URI or a connection string.
//
// # Items
//
// A record is one item, created once and never replaced. Its id is the worker type, a colon, and the Seq in 20 digits
// ([store.Key]), and its partition is the worker type (partition key /workerType). The other fields are those of [store.Record] in
// camelCase, as [storekit.Encode] writes them. Uniqueness and order rest on the id, which is unique within a partition. An item
// whose fields contradict its key appears at its key, with a Defect; fields that this version doesn't know aren't requested.
//
// # Guarantees
//
//   - [Ledger.Append] returns nil only when Azure has acknowledged the item: a majority of the replicas of the write region
//     has it. With Strong consistency, so have the other regions (a quorum if there are three or more).
//   - Of any number of appends to one key, at most one returns nil.
//   - After a 408, a persistent 449, a 5xx, a lost connection, or a region that doesn't take writes at the moment (403,
//     substatus 3), the outcome is unknown: the record may be stored, now or later. Read the key back.
//   - An error that came before anything was sent matches [store.ErrNotStored], too.
//
// An operation ends with its context: give each one a deadline. Its request is cancelled, and nothing waits at the service; an append
// may be made later, so its outcome is unknown. A throttled request (429) is sent again after the wait that Azure
// names, up to ten times in all, while the wait fits in the deadline; otherwise the operation returns a [store.ThrottledError] at
// once. A 449 is sent again after some milliseconds. The SDK's own retries are off, except for reads that get 500, 502, 504, 408,
// or 404 with substatus 1002 (once), and for requests sent to a region that doesn't take them (once a second).
//
// No error shows a key. The SDK's error is in the chain, for errors.As. The charge of each request, failed ones included, is put
// on the receipt of the context ([store.WithReceipt]).
//
// # Consistency
//
// Reads go to the write region, whatever other regions the account has. If the account's default consistency is Strong, they ask
// for Strong, otherwise for the default: Azure refuses to read more strongly than that. With Strong, and in the write region with
// BoundedStaleness, reads see every acknowledged append. With Session, ConsistentPrefix and Eventual a read asks one replica, and
// may miss the appends of the last moments.
//
// Safety doesn't rest on that: an append after a stale read finds its key taken. A stale read could do harm only if it were older
// than the engine's retention of records (at least 2 h) less the hour after which a claim is void; replicas of one region lag by
// milliseconds. Stale reads cost requests and, now and then, a slot. So no level is refused, and [Account.Warning] reports one
// weaker than BoundedStaleness. Strong and BoundedStaleness double the charge of reads.
//
// # What is refused
//
// Account and container are checked before the first use, every ten minutes, and when requests fail as they do after a failover or
// a change. They are refused with [store.ErrRefused]
//
//   - if the account takes writes in several regions: each of them accepts the same key, and of two workers that both got a lease
//     one loses its record later, silently;
//   - if the account doesn't say whether it does, unless unsafeUnverifiedAccount=true accepts that. Then a container that may not
//     be read isn't checked either;
//   - if the container's partition key isn't /workerType, if it has a default time to live or unique keys of its own, or if its
//     index isn't consistent.
//
// An operation waits at most a second for a slow check. While checks fail, the last successful one counts for two hours. A check
// costs one read of the container, on the receipt of the operation that caused it. What the SDK reads of the account every five
// minutes counts, too. Between two checks, an administrator can still do damage.
//
// # Failover, and what it can lose
//
// While an account's write region changes, appends fail or wait. A worker that holds a lease needs no write to keep it. A planned
// failover loses nothing. One after the loss of a region loses, by Microsoft's documentation, nothing with Strong consistency; the
// last moments, up to the configured staleness, with BoundedStaleness; and up to about 15 minutes with the weaker levels. Among that
// may be leases that workers are working under: until their windows end, a second worker may get the same slot, with the same token
// if it began on the boundary. If you can't accept that, use Strong consistency with at least three regions, or a single region: the
// store is down while the region is, and loses nothing, unless it is lost for good and restored from a backup.
// [Account.Warning] reports several regions without Strong. After a restore the ledger has lost its newest records: stop the workers
// first.
//
// When a write is refused, the SDK at once asks for the current write region, and reads follow. A process that only reads may use
// the former one for five more minutes.
//
// With per-partition automatic failover, Azure moves the writes of single partitions to another region. Azure's SDK for Go doesn't
// follow a partition ([Microsoft's list]): meanwhile appends of its worker types fail (403, substatus 3), their outcome is unknown,
// and work resumes when the partition is back. A single write region is still required, and still enough: at any time, one region
// takes the writes of a partition. Without Strong consistency a partition may lose its last moments on the way, as an account does.
// [Account.PartitionFailover] and [Account.Warning] report the option. Turn it off, unless other programs need it.
//
// # Rights
//
// A key allows everything. Better, use Microsoft Entra ID with a custom role, which leasectl init --print, or [Ledger.InitScript],
// has, with the commands that create database and container. Without items/delete nothing is trimmed; replace and upsert aren't
// needed for the ledger. Tokens can't create databases and containers: with them, [Ledger.Init] only checks an existing container.
// A container with another index works as well, but appends cost more, and if /id isn't indexed, Tail fails with Azure's error.
// Requests are HTTPS to port 443 of the account's host and those of its regions, through the proxy of the environment.
//
// [Options].Credential takes any azcore.TokenCredential, and KeyFunc gives the account key of now, for each client that the ledger
// makes: at first, every ten minutes, and after the account has refused one. So one operation may fail when a key is replaced, and
// the next goes on. An azcosmos.Client can't be taken: it sends requests again by itself, to other regions too, and keeps to itself
// what the account says of its regions. Give its credential, and its Transport if the connections are to be shared.
//
// # The roster
//
// The container <container>-roster keeps who is there: one item for each worker, which each Attend replaces by one upsert, of about
// 1 KB ([4.95 RU], or twice that for one that replaces an item). Its id is the worker type, a colon, and the ID.
//
// [Ledger.Init] creates it with a key, and without throughput of its own: it shares that of the database, if it has some; in a
// serverless account it costs what is used, and else Azure bills its least for a container, 400 RU/s. Without it nothing else
// changes: it is empty, and Attend returns [store.ErrMissing]. Its rights are those above, and items/upsert. Assign that for this
// container alone, or else a worker could overwrite a lease.
//
// # Time
//
// [Ledger.Tail] selects Azure's clock along with the records, as GetCurrentTimestamp(), and [Ledger.Now] asks for it alone. A server
// that doesn't know the function refuses the query. Then, and for the tail of an empty ledger, the stamp is the Date header of the
// reply, which is up to a second older. [Ledger.Append] reports the item's own _ts on the receipt; a second is allowed on either
// side, because it isn't documented whether it is truncated. The uncertainty of the clock after one stamp is
//
//	GetCurrentTimestamp   ± (skew + round trip / 2 + 0.5 ms)
//	Date, _ts             ± (skew + round trip / 2 + 1 s)
//
// The skew, serverSkew in the URI, is 250 ms by default: front ends and replicas have their own clocks and can't be identified, so
// that much is allowed between any two of them. It is an assumption, because no figure is published. A greater difference is taken
// for a clock that jumps. Requests bypass the cache of a dedicated gateway. A reply with two times that contradict each other gives
// no stamp.
//
// A machine's own clock doesn't matter, however wrong it is: from the second request on, signatures are dated by the account's time.
// Tokens of Microsoft Entra ID are an exception, because the machine measures their age.
//
// # What was tested, and what wasn't
//
// The conformance suite runs against @vercel/cosmosdb-server, a stand-in with a single process, over HTTP, or against the account
// named in COSMOS_URI. The rest is tested with a fake transport written after Microsoft's documentation of the REST API. Neither a
// real account nor Microsoft's emulator was tested (emulators are reached on a loopback address, by insecureHTTP=true or
// insecureSkipVerify=true). So the following rests on documentation alone: that creates of one id are decided by one replica set; the
// consistency levels, and the losses of a failover; how a partition that has failed over refuses appends; charges, and the substatus
// of a missing container; the age of the Date header, and the skew of the servers' clocks; GetCurrentTimestamp beside ORDER BY;
// NOT ARRAY_CONTAINS across partitions; and that the role above suffices.
//
// [4.95 RU]: https://learn.microsoft.com/azure/cosmos-db/understand-request-unit-consumption
// [Microsoft's list]: https://learn.microsoft.com/azure/cosmos-db/how-to-configure-per-partition-automatic-failover
package cosmos
