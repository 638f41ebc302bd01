// Package azblob keeps ledgers in a container of Azure Blob Storage: [Open] makes a [store.Ledger] of a URI.
//
// # Blobs
//
//	FOLDER/ledger/WORKERTYPE/N   a record, as JSON (storekit.Encode); N is 2^53-1 less its Seq, in 16 digits
//	FOLDER/ledger/-probe         a blob of two bytes, see below
//	FOLDER/roster/WORKERTYPE/id-ID   a presence, as JSON
//
// A record is a block blob, put by one request with If-None-Match: *, and never replaced. Lists are in the order of
// names, so that they begin with the newest record. A list that isn't is an error, since the head could be missed.
// Accounts with a hierarchical namespace will do.
//
// # Guarantees
//
//   - Of any number of puts with If-None-Match: * to one name, at most one succeeds; the others get 409
//     (BlobAlreadyExists) or 412 (ConditionNotMet), which are store.ErrConflict ([conditional headers]). That is the one
//     atomic operation that a ledger needs.
//   - Reads and lists of the primary endpoint are strongly consistent: they see every put that was acknowledged
//     before. The secondary endpoint of an account with RA-GRS is refused.
//   - After another 409 or 412, after 5xx and without a reply an append is unknown. After 401, 403, a missing container
//     and an immutability policy nothing was stored.
//
// An operation ends with its context. The SDK's own retries are off; it is told no deadline, and is cancelled at it.
// Nothing waits at the service then: an append may be made later, so its outcome is unknown.
//
// # Time
//
// The service's clock is the Date of its replies, in whole seconds. A server may renew it only once a second, so that
// a stamp has a granularity and a largest age of 1 s. How far the clocks of Azure's servers are apart isn't published:
// [Options.ServerSkew], 250 ms by default, is an assumption. One stamp leaves ± (1 s + skew + round trip / 2); workers
// that look again know it better, ± 0.85 s as measured. So of a slot of 10 s some 8 s are worked in, and
// workerlease.Options.FailoverWithin below 11 s is refused, and so are slots below 2.4 s ([Ledger.FailoverFloor]).
//
// Last-Modified of an own append would not be better: it has whole seconds, too, nothing says at which moment of a put
// it is read, and it may be the clock of another server.
//
// Requests are signed with a date, which the service refuses if it is wrong by more than 15 min. It is the service's
// own from the second request on, and one that was refused for its date is sent again. So the clock of the worker's
// machine doesn't matter, but for tokens of Microsoft Entra ID, whose age the SDK measures by it.
//
// # What is refused
//
// Before the first use, every ten minutes, and when requests fail as they do after a change, the service is checked. It
// is refused with [store.ErrRefused] if it ignores If-None-Match: each handle finds out once, before its first
// operation, unless it is ReadOnly, by putting FOLDER/ledger/-probe, twice if it isn't there yet.
//
// [Ledger.Warning] speaks of an account that is copied to a second region, and of an immutability policy or a legal hold of
// the container, with which nothing can be trimmed and no presence renewed.
//
// What this login can't see: lifecycle management policies, which belong to the management of the account. None may
// delete blobs of the container, since it would delete the newest record of an idle ledger, nor move them to the
// archive tier, where they can't be read. Look with
//
//	az storage account management-policy show --account-name ACCOUNT --resource-group GROUP
//
// Soft delete and versions do no harm: what was deleted isn't listed, and its name is free. It is paid for until it is
// gone.
//
// # Durability
//
// Azure acknowledges a record when three copies in the region have it. With GRS, GZRS and their RA variants, a failover
// to the second region loses what wasn't copied yet, leases among it: two workers may get the same slot until those
// leases end. Use ZRS, or stop all workers before a failover and wait for the longest lease. See [Ledger.Durability].
//
// # Rights
//
// Keys come from the environment, never from the URI: AZURE_STORAGE_KEY, AZURE_STORAGE_CONNECTION_STRING or
// AZURE_STORAGE_SAS_TOKEN, of which one may be set; or else tokens, of whatever identity azidentity's default credential
// finds. Those need the role that leasectl init --print, or [Ledger.InitScript], assigns.
//
// A shared access signature for the container needs the permissions racwdl, and rl for people who look. Without d
// everything works but trimming and leaving the roster. [Ledger.Init] creates the container unless it is there, for
// which a signature of the container doesn't suffice.
//
// # The application's own client and keys
//
// With Options.Client requests are those of the application's *container.Client, with its credential, its transport and its policies. Each
// is sent once, whatever its RetryOptions say: a second put would be refused for the first. They are dated by the machine's clock,
// which the service refuses if it is wrong by more than 15 min. A transport that limits its connections makes operations wait for one, until their contexts
// end. An account key that rotates is that of the client's credential (SetAccountKey). Options.Credential takes any azcore.TokenCredential. A
// shared access signature that ends needs a new ledger, or a client whose policies renew it.
//
// # Costs
//
// An append is one write, a Get one read, Now one other operation, and a tail one list and a read for each record, of
// which workers read two. A trim is two lists or more, 5,000 names each, and a deletion for each record, which is free.
// So for three workers a slot costs 1 write, 3 lists, 6 reads and 3 others. leasectl plan --store azblob counts them.
// Each handle pays one write when it is
// opened, and three others every ten minutes. The roster costs a write for each presence.
//
// # What was tested, and what wasn't
//
// The conformance suite, the suite of outages and a race of processes run against [Azurite] 3.35.0, Microsoft's emulator,
// on a disk. Throttling, 5xx, refusals for a wrong date, policies and other accounts were played after Microsoft's
// documentation, because Azurite has none. Azure itself, tokens of Microsoft Entra ID and
// accounts with a hierarchical namespace were not tested. So what is said of Azure's atomicity, its consistency, its Date and the skew of its clocks
// rests on documentation or, as said, on assumption.
//
// [conditional headers]: https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
// [Azurite]: https://github.com/Azure/Azurite
package azblob
