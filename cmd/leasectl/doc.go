// Command leasectl runs commands under time-slotted worker leases, looks at
// their ledgers, and shows how it all works.
//
//	leasectl backup                copy a SQLite ledger, while workers use it
//	leasectl copy                  move a worker type to another store
//	leasectl demo                  three workers, a crash and a return, in 35 s
//	leasectl doctor                find out whether it is set up right
//	leasectl drain                 let the workers of a host claim nothing for a while
//	leasectl import                write jobs.yaml from crontabs, CronJobs or timers of systemd
//	leasectl init                  create what a store needs
//	leasectl inspect slots         the past, present and next holder of each slot
//	leasectl inspect workers       who is there, who holds, and why the others don't
//	leasectl next                  the next slots of a schedule or worker type
//	leasectl override              end what leaves nothing to claim for long
//	leasectl pause, resume         let no worker claim for a while
//	leasectl plan                  what workers will cost: operations, requests, request units
//	leasectl prefer                let one worker go first for a while
//	leasectl reanchor              take the time of a SQLite ledger from the machine's clock
//	leasectl release               ask the holder to give up its lease
//	leasectl run … -- COMMAND      run a command in each slot that is held
//	leasectl status                all worker types at a glance
//	leasectl trim                  delete old records
//	leasectl verify                check that whole ledgers keep the protocol's rules
//	leasectl version               and --check: whether workers run the same
//	leasectl why                   who had a slot, and why others didn't
//
// leasectl --help says how the store is named, and leasectl help exit-codes what the exit codes mean. docs/leasectl.md tells all
// that matters in operation.
//
// The stores of etcd, Kubernetes and NATS have a leasectl of their own, each of which opens all the other stores of this one, too,
// such as [github.com/slotlease/slotlease/store/etcd/leasectl]. They are modules of their own, so that nobody links what they need
// who doesn't use them. [github.com/slotlease/slotlease/cmd/full/leasectl] opens them all, and is the one that is released. With the tag
// lite, this one leaves out the SDKs of the clouds: Cosmos DB, S3 and Azure Blob Storage. For a store of yours, build one as
// [github.com/slotlease/slotlease/cmd/leasectl/app] shows; its help lists the form under which the store is registered. The
// packages of the stores say which further parameters a URI has.
package main
