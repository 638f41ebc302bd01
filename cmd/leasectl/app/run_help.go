package app

import "github.com/slotlease/slotlease/cmd/leasectl/internal/listen"

const runExamples = `  leasectl run --worker-type invoices --every 5m -- ./export.sh
  leasectl run --worker-type report --cron '0 2 * * *' --once-per-slot -- ./report.sh
  leasectl run --worker-type report --cron '30 1 * * *' --once --once-per-slot -- ./report.sh
  leasectl run --worker-type poller --every 1m --continuous --failover-within 15s -- ./poller`

const runHelp = runWork + `

Probes, status and metrics: --listen

  leasectl answers HTTP requests while it leases. --listen 9090 or :9090 listens on 127.0.0.1
  alone; --listen 0.0.0.0:9090 or [::]:9090 on all interfaces, without a password. If the
  port is taken, leasectl ends before it leases. No request can delay the command.

  /healthz   liveness: 503 if the command outlives its lease, which only a restart mends,
             else 200, also while the store is down
  /readyz    readiness: 503 until the store has answered, after it has failed three times in
             a row, and where something blocks the worker, else 200, also on standby
  /metrics   for Prometheus: those of workerlease/promlease, and those of the process
  /status    JSON, whose fields are below

` + listen.StatusHelp + `

systemd: Type=notify

  Where NOTIFY_SOCKET is set, leasectl tells systemd READY=1 once the store has answered,
  STATUS= with what the worker does, STOPPING=1, and with WatchdogSec= WATCHDOG=1 at half of
  that time: while the worker is alive, not merely its process. It is not if the command
  outlives its lease, or if nothing has happened for a minute although its slot is over. A
  store that is down is no reason. With --once, leasectl tells nothing.

` + runEnvironment

const runWork = `Run a command in each slot that this worker holds.

The command runs under a guard, which ends it and all its descendants before the lease
ends: also when they ignore SIGTERM, when they detach, and when leasectl itself is killed
or stopped.

  - It gets SIGTERM --stop-grace before the last safe moment of the lease, and SIGKILL at
    that moment. Killing takes time, so it begins 1/50 of the lease earlier, at most 100ms.
  - A command that exits is not started again in that slot, and the lease is kept to the
    end of the slot, whatever the exit code. --once-per-slot changes that: see below.
  - Ctrl-C (SIGINT), SIGTERM and SIGHUP stop the command (SIGTERM, and SIGKILL after
    --stop-grace), release the lease, and end leasectl with code 0. A second signal, more
    than a second after the first, kills the command at once. A signal that was ignored
    when leasectl started (SIGHUP by nohup, SIGINT by a script's &) stays ignored.
  - If a descendant can't be killed, such as one of sudo, the lease is not released, its
    slot is not recorded as done, and no other begins: leasectl ends with code 9.
  - While the store can't be reached, leasectl keeps trying. If it refuses or denies what
    a worker does for 10s, leasectl ends with code 4 or 5. If the ledger was removed, it
    ends with code 6, 10s after it has noticed, also if the ledger is put back meanwhile.
  - The command's standard output and error are those of leasectl. So is its standard
    input, unless that is a terminal: then it has none.

Failover: --failover-within

  By default, a slot is lost when its worker dies. With --failover-within 30s, another
  worker takes over the rest of the slot within 30s. Add the turn of its --priority, store
  latency and up to 4 × clock uncertainty; near the end of a slot, also --lead.

  The lease is then taken for one part of the slot at a time, and extended while the
  worker lives. With 5m slots and 30s, the worker writes to the store 14 times in a slot
  instead of once, and each other worker reads as often. "leasectl plan" shows the cost.
  Not with --group.

Daemons: --continuous

  The worker that also wins the next slot goes on without a break: the command runs on
  over the boundary, under the same token. Other workers still compete for each slot, and
  one of a higher --priority takes over at its start. With --no-failback the lease stays
  where it is while its worker lives; give that flag to all workers of the type. Not with
  --group.

Jobs: --once-per-slot

  The command is a job to be done in each slot.

  - Exit code 0 means that the slot is done. The ledger records that, and no worker runs
    the command for that slot again, even after a restart of all of them.
  - Any other exit code, or a signal, means that it failed. The rest of the slot is
    released, and the command is tried again: by another worker first, if there is one.
    From the second failure on, --min-retry lies between them, doubled by each.
  - If leasectl or its machine dies, another worker begins within --failover-within, which
    defaults to a quarter of the shortest slot here, at most 1m and at least 8 × --margin.
    The cost is that of --failover-within.
  - Each of these is an attempt. After --max-attempts of them by all workers together, the
    slot is left undone, and that is logged as an error. By default there is no bound but
    time. Give the flag to all workers of the type.
  - A command that was told to end, with its lease or with leasectl, may still exit with 0:
    then the slot is done. With any other code it was cut short, which is no failure. If
    time is left in the slot, it is tried again, as one more attempt.
  - When the slot is over, it is over: slots must be longer than the command takes. With
    --run-missed the next slot makes up for it: the command runs for the slot before
    first, if no worker did it, and then for its own slot. LEASE_SLOT_START and
    LEASE_SLOT_END show which. It runs once for the missed slot, whatever its outcome.
    Older slots are skipped, and so are those before the first that was ever done.

  The command runs at least once in a slot in which any worker works, not exactly once: if
  leasectl dies, or loses the store, after the command ends and before that is recorded,
  the command runs again, and must bear it. With --max-attempts 1, and without
  --run-missed, it begins at most once, and may not complete. After a restart in
  mid-slot, a worker tries the rest of that slot only with --join-mid-slot. Not with
  --group or --continuous.

The current slot alone: --once

  For cron, Kubernetes CronJobs, and where flock -n was used: leasectl claims what is left
  of the current slot, whatever its priority, runs the command, gives the slot back, and ends
  with the command's exit code (128 plus the signal that ended it).

  - If another worker has the slot, it ends at once with code 10, or --conflict-exit-code,
    and doesn't run the command. So it does if too little of the slot is left.
  - Without --once-per-slot, the slot is free again when the command has ended: whoever comes
    later in the same slot runs it again. That is flock -n, over many machines.
  - With --once-per-slot, exit code 0 means that the slot is done: whoever comes later ends
    with code 10. Any other exit code frees it, and whoever comes next tries it again, up to
    --max-attempts, and no sooner than by --min-retry: until then that, too, is code 10.
    Here failover is on, as without --once.
  - If leasectl or its machine dies, the slot stays claimed to its end, or with
    --failover-within for that long. Who comes then runs the command.
  - It waits for nobody. A store that doesn't answer is tried for --timeout, then the code is
    3. To wait for the slot's end, leave out --once.
  - If a job has ended with exit code 0, and that can't be recorded, the code is 1.
  - Let slots begin well before cron starts the command, such as --cron '30 1 * * *' for a
    command at 2:00: machines whose clocks differ must not see two slots.

SIGTERM where leases are extended

  - While an extension may still come, SIGTERM waits until three quarters of the time for
    it have passed. In a part of a slot, that is at most --failover-within/16 before the
    last safe moment; before a slot that --continuous may win it is at most --lead/4, and
    less for a --priority whose turn comes late. SIGTERM comes that early if the store
    can't be reached or another worker has won; a command whose lease is extended in time
    isn't disturbed.
  - Where no extension can follow, at the end of a slot without --continuous, it comes
    --stop-grace before the end, as always.
  - A command that was told to end, and whose lease is extended after all, is started
    again at once. With --once-per-slot it has failed, unless its exit code is 0.
  - With --continuous, a command that exited is started again when the next slot begins.
  - When leasectl is stopped (SIGSTOP), the command is killed at the end of the lease that
    its guard knew last.

The log

  It says what comes next, by the store's time: when the first slot begins, who has a slot
  and until when, that a slot is done, and when the next one begins. For slots of less than
  10s only --verbose does. With --log-format json the lines are

  first slot          nextSlot, nextSlotInMs
  standby             holder, holderPriority, until, and the slot; with --once it is
                      "not claimed"
  slot done already   doneBy (left out where the ledger doesn't say), nextSlot, nextSlotInMs,
                      and the slot
  next slot           nextSlot, nextSlotInMs

  Each line has time, level, message, workerType and instanceId, and slotStart and slotEnd if
  it is about a slot. Times are RFC 3339 in UTC, and all but "time" are the store's.`

const runEnvironment = `Environment

  The command has the environment of leasectl, without LEASECTL_STORE and LEASECTL_STORE_FILE
  (which may lead to a password; nor, for a store in Cosmos DB, COSMOS_KEY and
  COSMOS_CONNECTION_STRING; in etcd, ETCD_PASSWORD; in Redis, REDIS_SENTINEL_PASSWORD), without
  NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and with

  LEASE_WORKER_TYPE   the worker type
  LEASE_INSTANCE_ID   the label of this worker
  LEASE_GROUP         its group, or empty
  LEASE_TOKEN         the fencing token: pass it along with every write
  LEASE_SLOT_START    start of the slot: RFC 3339, UTC, milliseconds; store time;
                      with --run-missed it may be the slot before the lease's
  LEASE_SLOT_END      its end
  LEASE_EXPIRES_AT    when the lease ends; the command is stopped a little earlier

  They are as of the start of the command: with --failover-within each extension moves the
  end of the lease, and with --continuous other slots follow.`
