// Command leasectl runs commands under time-slotted worker leases, looks at
// their ledgers, and shows how it all works.
//
//	leasectl backup                copy a SQLite ledger, while workers use it
//	leasectl copy                  move a worker type to another store
//	leasectl demo                  three workers, a crash and a return, in 35 s
//	leasectl doctor                find out whether it is set up right
//	leasectl drain                 let the workers of a host claim nothing for a while
//	leasectl init                  create what a store needs
//	leasectl inspect slots         the past, present and next holder of each slot
//	leasectl inspect workers       who is there, who holds, and why the others don't
//	leasectl next                  the next slots of a schedule or worker type
//	leasectl override              end what leaves nothing to claim for long
//	leasectl pause, resume         let no worker claim for a while
//	leasectl plan                  what workers will cost: operations, request units, prices
//	leasectl prefer                let one worker go first for a while
//	leasectl reanchor              take the time of a SQLite ledger from the machine's clock
//	leasectl release               ask the holder to give up its lease
//	leasectl run … -- COMMAND      run a command in each slot that is held
//	leasectl status                all worker types at a glance
//	leasectl trim                  delete old records
//	leasectl verify                check that whole ledgers keep the protocol's rules
//	leasectl version
//	leasectl why                   who had a slot, and why others didn't
//
// The store is named by --store or in the file of --store-file, or else by the environment
// variable LEASECTL_STORE or in the file of LEASECTL_STORE_FILE:
//
//	sqlite:PATH        sqlite:x.db is relative, sqlite:/x.db absolute
//	mongodb://USER:PASSWORD@HOST/DATABASE?collection=NAME
//	mongodb+srv://…
//	cosmos://ACCOUNT/DATABASE/CONTAINER
//	postgres://USER:PASSWORD@HOST/DATABASE?schema=NAME&table=NAME, or postgresql://…
//	mysql://USER:PASSWORD@HOST/DATABASE?table=NAME, or mariadb://…
//	redis://USER:PASSWORD@HOST/0?prefix=NAME&replicas=N, or rediss://… with TLS
//	redis+sentinel://USER:PASSWORD@HOST,HOST/SERVICE/0, or rediss+sentinel://…
//	s3://BUCKET/FOLDER?region=NAME&endpoint=URL&pathStyle=true
//	azblob://ACCOUNT/CONTAINER/FOLDER?endpoint=URL
//	etcd://HOST:PORT,HOST:PORT/PREFIX?user=NAME, or etcds://… with TLS
//	k8s:NAMESPACE?kubeconfig=PATH&context=NAME
//
// The last two are for a leasectl of their own, each of which opens all of the above, too: [github.com/slotlease/slotlease/store/etcd/leasectl]
// and [github.com/slotlease/slotlease/store/kubernetes/leasectl]. They are modules of their own, so that nobody links
// what they need who doesn't use them. For a store of yours, build one as [github.com/slotlease/slotlease/cmd/leasectl/app]
// shows; its help lists the form under which the store is registered. The packages of the stores say
// which further parameters a URI has.
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
// Where the URI has no password, or must not have one, it comes from the environment: PGPASSWORD for PostgreSQL, MYSQL_PWD
// for MySQL, REDISCLI_AUTH and REDIS_SENTINEL_PASSWORD for Redis, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
// for S3, AZURE_STORAGE_KEY, AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_SAS_TOKEN for Azure Blob Storage, ETCD_PASSWORD for
// etcd. Those that no tool but leasectl takes, which are ETCD_PASSWORD and REDIS_SENTINEL_PASSWORD, aren't passed on to the
// commands that it runs with that store; the others may be needed there.
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
