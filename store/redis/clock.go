package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/store"
)

// stamp is a reading of the server's clock, in seconds and microseconds.
func (l *Ledger) stamp(k *link, seconds, micros any) (store.Stamp, error) {
	s, err := strconv.ParseInt(fmt.Sprint(seconds), 10, 64)
	us, usErr := strconv.ParseInt(fmt.Sprint(micros), 10, 64)
	if err = errors.Join(err, usErr); err != nil {
		return store.Stamp{}, fmt.Errorf("odd time %.40v: %w", []any{seconds, micros}, err)
	}
	return store.Stamp{Time: time.Unix(s, us*1000).UTC(), Granularity: time.Microsecond, Skew: l.skew(), Server: k.addr}, nil
}

// skew is that of stamps.
func (l *Ledger) skew() time.Duration {
	switch {
	case l.address.skew > 0:
		return l.address.skew
	case l.address.service != "" || l.copied.Load() || l.elsewhere.Load() != nil:
		return DefaultSkew
	}
	return 0
}
