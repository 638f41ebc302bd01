package main

const runHelp = `Run a command in each slot that this worker holds.

The command runs under a guard, which makes sure that neither it nor any of its
descendants outlives the lease: not when they ignore SIGTERM, not when they
detach, and not when leasectl itself is killed or stopped.

  - It gets SIGTERM --stop-grace before the last safe moment of the lease, and
    SIGKILL at it (less the time that killing takes: 1/50 of the lease, at most
    100ms).
  - When it ends by itself, it is not started again in that slot, and the lease
    is kept to the end of the slot, whatever its exit code. With --once-per-slot
    one that failed is tried again: see below.
  - --failover-within, --continuous and --once-per-slot extend leases. The end
    moves then, and SIGTERM and SIGKILL with it: see below.
  - Ctrl-C (SIGINT), SIGTERM and SIGHUP stop the command (SIGTERM, and SIGKILL
    after --stop-grace), then release the lease, then end leasectl with code 0. A
    second signal kills the command at once. A signal that was ignored when
    leasectl was started (SIGHUP by nohup, SIGINT by a script's &) stays ignored.
  - A store that can't be reached is tried again for ever.
  - Its standard output and error are those of leasectl, and so is its standard
    input, unless that is a terminal: then it has none.

Without more, a slot is lost when the worker that holds it dies. With
--failover-within 30s another takes over what is left of it within 30s of the death.
On top of that come the turn of its --priority, what the store takes, and up to four
times the uncertainty of store time; towards the end of a slot, up to --lead more. For
that the lease is taken for a part of the slot at a time, and extended while the worker
lives: with 5m slots and 30s the store is written to 14 times in a slot instead of once,
and each other worker reads it as often. "leasectl plan" tells what that costs.

With --continuous the worker that wins the next slot, too, goes on without a break:
the command runs on over the boundary, under the same token. That is for daemons.
Others still compete for each slot, and one of a higher --priority takes over at
its start; unless all have --no-failback, which leaves the lease where it is for as
long as its worker lives.

With --once-per-slot the command is a job that is to be done in each slot, such as
"leasectl run --cron '0 2 * * *' --once-per-slot --max-attempts 3 …":

  - Exit code 0 means that the slot is done. That is recorded in the ledger, and from
    then on nobody runs the command for that slot, not even if all are restarted.
  - Any other exit code, and a signal, means that it has failed. What is left of the
    slot is released, and the command is tried again: by another worker first, if
    there is one, and then by any.
  - So it is, too, when leasectl or its machine dies: another begins within
    --failover-within, which is a quarter of the shortest slot here, at most 1m, unless
    it is given. It costs what --failover-within does.
  - Each of these counts as an attempt. A slot for which there were --max-attempts of
    them by all workers together is left as it is, undone, and that is logged as an
    error. Without the option it is tried as often as its time allows.
  - A command that was told to end, with its lease or because leasectl is stopped, is
    asked for its exit code all the same: with 0 the slot is done. With any other it
    hasn't failed but was cut short: if something is left of the slot, it is tried
    again, and that counts as one more attempt.
  - When the slot is over, it is over: slots must be longer than the command takes.
    With --run-missed the next slot makes up for it: the command is run for the slot
    before first, if nobody did it (LEASE_SLOT_START and LEASE_SLOT_END say which),
    once, whatever comes of that; and then for its own. Slots before that are
    skipped, and so are those before the first that was ever done.

The command is run at least once in a slot that anybody works in, not exactly once: if
leasectl dies, or the store can't be reached, after the command has ended and before
that is recorded, it is run again. So it must bear that. With --max-attempts 1, and
without --run-missed, it is begun at most once, and perhaps its work is not done. After
a restart in mid-slot a worker tries what is left of it with --join-mid-slot only.

Where leases are extended, their end moves, and with it that of the command:

  - As long as an extension may yet come, SIGTERM waits until three quarters of the
    time for it have passed. In a part of a slot that is --failover-within/16
    before the last safe moment; before a slot that --continuous may win it is
    --lead/4, and less for a --priority whose turn comes late. A command is told
    so long before the end if the store can't be reached, or another has won; if
    leases are extended in time it isn't disturbed.
  - Where nothing is to be extended any more, at the end of a slot without
    --continuous, it comes --stop-grace before, as always.
  - A command that was told to end, and whose lease is extended after all, is
    started again at once; with --once-per-slot it has failed, unless its exit code
    is 0.
  - With --continuous, a command that ended by itself is started again when the
    next slot begins.
  - When leasectl is stopped (SIGSTOP), the command is killed where the lease ended
    when it was extended last.

The command's environment is that of leasectl, without LEASECTL_STORE (which may
hold a password; nor, for a store in Cosmos DB, COSMOS_KEY and
COSMOS_CONNECTION_STRING), and with

  LEASE_WORKER_TYPE   the worker type
  LEASE_INSTANCE_ID   the label of this worker
  LEASE_GROUP         its group, or empty
  LEASE_TOKEN         the fencing token: pass it along with every write
  LEASE_SLOT_START    start of the slot: RFC 3339, UTC, milliseconds; store time;
                      with --run-missed perhaps the slot before the lease's
  LEASE_SLOT_END      its end
  LEASE_EXPIRES_AT    when the lease ends; work is stopped a little earlier

These are as of when it is started: with --failover-within the lease ends later
each time that it is extended, and with --continuous other slots follow.`
