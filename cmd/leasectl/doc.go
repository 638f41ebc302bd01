// Command leasectl runs commands under time-slotted worker leases, looks at
// their ledgers, and shows how it all works.
//
//	leasectl backup                copy a SQLite ledger, while workers use it
//	leasectl demo                  three workers, a crash and a return, in 35 s
//	leasectl doctor                find out whether it is set up right
//	leasectl init                  create what a store needs
//	leasectl inspect slots         the past, present and next holder of each slot
//	leasectl override              end what leaves nothing to claim for long
//	leasectl plan                  what workers will cost: operations, request units
//	leasectl reanchor              take the time of a SQLite ledger from the machine's clock
//	leasectl run … -- COMMAND      run a command in each slot that is held
//	leasectl verify                check that whole ledgers keep the protocol's rules
//	leasectl version
//
// The store is named by --store or in the file of --store-file, or else by the environment
// variable LEASECTL_STORE or in the file of LEASECTL_STORE_FILE:
//
//	sqlite:PATH        sqlite:x.db is relative, sqlite:/x.db absolute
//	mongodb://USER:PASSWORD@HOST/DATABASE?collection=NAME
//	mongodb+srv://…
//	cosmos://ACCOUNT/DATABASE/CONTAINER
//
// A SQLite file must be on a local disk. sqlite:PATH?unsafeFileSystem=true accepts
// others, for those who know that one machine alone uses the file, by one mount.
//
// A URI with a password belongs in the environment: everybody on the machine can read
// the arguments of a process. Or it belongs in a file, such as a secret that Kubernetes mounts:
// one line of at most 64 KiB, read once. leasectl never shows a password, and removes LEASECTL_STORE
// and LEASECTL_STORE_FILE from the environment of the commands that it runs.
//
// An account of Azure Cosmos DB for NoSQL is ACCOUNT.documents.azure.com, unless
// ACCOUNT has a dot or a port: then it is the host. The environment variable COSMOS_KEY
// has the account's key. Or COSMOS_CONNECTION_STRING has its connection string, which
// names the account, and the store is cosmos:///DATABASE/CONTAINER. With neither,
// leasectl uses Azure's default credential (environment, workload or managed identity,
// Azure CLI). Commands that run under a lease in Cosmos DB get neither variable. The
// parameters ?throughput=400, ?autoscale=1000 and ?serverless=true of the URI say what
// init provisions. ?serverSkew=500ms says how far the clocks of the account's servers may
// differ (250ms). ?unsafeUnverifiedAccount=true accepts an account that doesn't say whether
// it takes writes in several regions: if it does, two workers may hold one lease.
//
// Parameters of a MongoDB URI besides the driver's are ?collection=NAME; ?serverSkew=150ms, how
// far the clocks of members that can't be asked for them may be off (100ms); and
// ?unsafeUnverified=true, which accepts a collection with mongos even if rights are missing to find
// out whether it is sharded: if it is, two workers may hold one lease.
//
// # Exit codes
//
//	0    success; for run: stopped cleanly; run --once has the code of its command
//	1    another failure
//	2    usage: a bad option or argument, or something not supported
//	3    the store can't be reached, or an operation on it failed
//	4    the store is refused: not a ledger, or it can't keep a ledger's promises
//	5    access denied
//	6    the ledger is not initialised or was removed, or its directory is missing
//	7    the command can't be run
//	8    the demo found something that is not as it should be
//	9    processes of the command could not be killed: the lease was not released
//	10   run --once: another worker has the slot, or it is done; the command wasn't run
//	11   verify or doctor found a fault
//	130  interrupted
//	141  nobody reads the output any more, as in a pipe to head
package main
