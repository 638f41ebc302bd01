package redis

import (
	"fmt"
)

// wait is what waits for the replicas, after a write on the same connection.
func (l *Ledger) wait() []command {
	if l.address.replicas == 0 || l.readOnly {
		return nil
	}
	return []command{{"WAIT", l.address.replicas, l.address.wait.Milliseconds()}}
}

// waited reads the reply to what wait sends. Its error leaves the outcome of an append unknown.
func (l *Ledger) waited(replies []reply) error {
	if len(l.wait()) == 0 {
		return nil
	}
	r := replies[len(replies)-1]
	if r.err != nil {
		return fmt.Errorf("wait for replicas: %v", r.err) //nolint:errorlint // its meaning isn't that of the write
	}
	if n, ok := r.value.(int64); !ok || n < int64(l.address.replicas) {
		return fmt.Errorf("%v of %d replicas have it after %v (replicas=%d)", r.value, l.address.replicas, l.address.wait, l.address.replicas)
	}
	return nil
}
