package app

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/override"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

func (a *app) overrideCommand() *cobra.Command {
	o := override.Options{Timeout: defaultTimeout}
	c := a.onStore("override --worker-type TYPE --seq N", "End what leaves nothing to claim for long", func(c *cobra.Command, t storeuri.Target) error {
		o.InstanceID, o.Ask = operator(), a.asker(c)
		return override.Run(c.Context(), t, o, override.Screen{Plan: a.told(), Result: a.shown})
	})
	flags := c.Flags()
	a.typeFlag(flags, &o.WorkerType, "")
	require(flags, "worker-type", "name the one whose record is to be overridden")
	option(a, flags, &o.Seq, "seq", "N", "the newest record, which is to be overridden (required)", seq)
	require(flags, "seq", "give the number of the newest record, as leasectl inspect slots shows it")
	option(a, flags, &o.DoneUntil, "done-until", "TIME", "up to when slots are done from then on, such as 2026-03-02T12:00:00Z", instant)
	option(a, flags, &o.Reason, "reason", "TEXT", reasonUsage, nonEmpty)
	flags.BoolVar(&o.Yes, "yes", false, "show what it risks, but don't ask")
	a.timeoutFlag(flags, &o.Timeout, waitTwice, time.Hour)
	return c
}

// seq reads the number of a record.
func seq(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > store.MaxSeq {
		return 0, fmt.Errorf("must be a whole number from 1 to %d", int64(store.MaxSeq))
	}
	return n, nil
}

// instant reads a time.
func instant(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.IsZero() {
		return time.Time{}, errors.New("must be a time such as 2026-03-02T12:00:00Z")
	}
	return t, nil
}

// operator labels the person who runs leasectl, as far as the machine knows.
func operator() string {
	name, host := "operator", "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil && h != "" {
		host = h
	}
	label := strings.ToValidUTF8(name+"@"+host, "")
	return label[:min(len(label), 256)]
}
