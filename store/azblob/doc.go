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
//
// # Time
//
// The service's clock is the Date of its replies, in whole seconds. A server may renew it only once a second, so that
// a stamp has a granularity and a largest age of 1 s. How far the clocks of Azure's servers are apart isn't published:
// [Options.ServerSkew], 250 ms by default, is an assumption. One stamp leaves ± (1 s + skew + round trip / 2); workers
// that look again know it better, ± 0.85 s as measured. So of a slot of 10 s some 8 s are worked in, and
// workerlease.Options.FailoverWithin below 8 s is refused ([Ledger.FailoverFloor]).
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
// finds. Those need
//
//	az role assignment create --role "Storage Blob Data Contributor" --assignee IDENTITY \
//	  --scope /subscriptions/S/resourceGroups/G/providers/Microsoft.Storage/storageAccounts/ACCOUNT/blobServices/default/containers/CONTAINER
//
// A shared access signature for the container needs the permissions racwdl, and rl for people who look. Without d
// everything works but trimming and leaving the roster. [Ledger.Init] creates the container unless it is there, for
// which a signature of the container doesn't suffice.
//
// # Costs
//
// An append is one write, a Get one read, Now one other operation, and a tail one list and a read for each record, of
// which workers read two. A trim is two lists or more, 5,000 names each, and a deletion for each record, which is free.
// So for three workers a slot costs 1 write, 3 lists, 6 reads and 3 others: $0.000026 in the hot tier at $0.055 for
// 10,000 writes or lists and $0.0044 for 10,000 reads or others (Microsoft's sample prices of 26 July 2024, which
// it calls fictitious: https://learn.microsoft.com/azure/storage/blobs/blob-storage-estimate-costs), which is
// $0.23 a month for slots of 5 min. leasectl plan --store azblob computes that. Each handle pays one write when it is
// opened, and three others every ten minutes. The roster costs a write for each presence.
//
// # Figures
//
// On loopback, with Azurite on the same two busy cores (go test ./store/azblob -bench . -benchtime 200x):
//
//	append      p50 8.2 ms, p99 169 ms, each saved to disk by Azurite
//	tail of 1   p50 4.1 ms, p99 78 ms; of 2: 3.7 ms, of 16: 19 ms on average
//	store time  ± 0.85 s, of which 0.25 s is the assumed skew; 4.2 s of a slot of 6 s were worked in
//	            (go test ./store/azblob -run TestTwoWorkersLead -v)
//	code        1,200 lines without tests
//	5,000       records: leasectl status 0.2 s, why 0.2 s, inspect slots 0.1 s, doctor 0.4 s, verify 12 s (make long); Azurite,
//	            one thread that searches all blobs for each, is no measure of more
//
// # What was tested, and what wasn't
//
// The conformance suite, the suite of outages and a race of processes run against [Azurite] 3.35.0, Microsoft's emulator,
// on a disk. Throttling, 5xx, refusals for a wrong date, policies and other accounts were played after Microsoft's
// documentation, because Azurite has none. In two minutes of chaos (make chaos STORE=azblob), with slots of 10, 20 and 30 s, real
// workers worked in 18 of 22 slots, and never two at once; each of the others is explained by the faults. Azure itself, tokens of Microsoft Entra ID and accounts with a hierarchical
// namespace were not tested. So what is said of Azure's atomicity, its consistency, its Date and the skew of its clocks
// rests on documentation or, as said, on assumption.
//
// [conditional headers]: https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
// [Azurite]: https://github.com/Azure/Azurite
package azblob
