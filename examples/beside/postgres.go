package beside

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Advisory is an advisory lock of PostgreSQL's, which its session holds: pg_try_advisory_lock.
type Advisory struct {
	Pool *pgxpool.Pool
	Key  int64
}

// TryLock takes the lock on a connection of its own. It is lost with that, which is asked once a second.
func (a Advisory) TryLock(ctx context.Context) (context.Context, func(), error) {
	conn, err := a.Pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	var locked bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, a.Key).Scan(&locked); err != nil || !locked {
		conn.Release()
		return nil, nil, err
	}
	held, stop := watched(ctx, time.Second, func(ctx context.Context) bool { return conn.Ping(ctx) == nil })
	return held, func() {
		stop()
		// With its connection the lock is free, whatever became of either.
		_ = conn.Hijack().Close(context.WithoutCancel(ctx))
	}, nil
}

// watched is a context that ends when a check fails, which is asked again and again and has as long for its answer. stop
// ends it, and waits for the last check: until then it goes on, since the code takes its time to return.
func watched(ctx context.Context, every time.Duration, good func(context.Context) bool) (held context.Context, stop func()) {
	held, cancel := context.WithCancel(ctx)
	checking, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		for {
			select {
			case <-checking.Done():
				return
			case <-time.After(every):
			}
			asked, answered := context.WithTimeout(checking, every)
			ok := good(asked)
			answered()
			if !ok {
				return
			}
		}
	}()
	return held, func() { end(); <-done }
}

// Runs is a table with a ticket for each run:
//
//	CREATE TABLE job_runs (job text, due timestamptz, by text NOT NULL, PRIMARY KEY (job, due))
//
// An old worker takes one by the same statement, at the time at which its run is due, and under its own lock.
func Runs(pool *pgxpool.Pool, job, system string) Ticket {
	return func(ctx context.Context, due time.Time) (mine bool, err error) {
		// The update changes nothing, and makes the statement return the row.
		err = pool.QueryRow(ctx, `INSERT INTO job_runs (job, due, by) VALUES ($1, $2, $3)
			ON CONFLICT (job, due) DO UPDATE SET by = job_runs.by RETURNING by = $3`, job, due, system).Scan(&mine)
		return mine, err
	}
}

// Shed is the row of a job in ShedLock's table, as its JDBC provider takes it with usingDbTime. The row is kept for atLeast,
// which must be what the old workers have as lockAtLeastFor: longer than their clocks differ, longer than Job.StartWithin, and
// shorter than a slot.
func Shed(pool *pgxpool.Pool, job string, atLeast time.Duration) Ticket {
	return func(ctx context.Context, due time.Time) (mine bool, err error) {
		const system = "slotlease"
		by := system + " " + due.UTC().Format(time.RFC3339)
		done, err := pool.Exec(ctx, `INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
			VALUES ($1, timezone('utc', CURRENT_TIMESTAMP) + $2, timezone('utc', CURRENT_TIMESTAMP), $3)
			ON CONFLICT (name) DO UPDATE SET lock_until = EXCLUDED.lock_until, locked_at = EXCLUDED.locked_at, locked_by = EXCLUDED.locked_by
			WHERE shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP) OR shedlock.locked_by = $3`, job, atLeast, by)
		return err == nil && done.RowsAffected() == 1, err
	}
}
