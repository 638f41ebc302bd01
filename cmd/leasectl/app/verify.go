package app

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/verification"
)

const verifyHelp = `Read whole ledgers, and check that each record keeps the protocol's rules.

A fault is a rule that is broken, and that workers went by or will: two holders may have
worked at once, or a token doesn't fence. A warning is something that somebody should look
at, such as slots that nobody claimed, or a record that breaks a rule and that workers
superseded before anyone obeyed it. A note explains what is seen. Of each kind at most 20
are shown: the first, and the newest. docs/operations.md lists the codes.

The exit code is 0 if there are no faults, and 11 if there are; with --strict it is 11 if
there are warnings, too. Nothing is written to the ledger. It is read a page at a time, and
workers go on meanwhile.

With --output json it prints one object:

  storeTime    time of the store's clock
  store        the store, without secrets
  sound        true if there are no faults
  faults, warnings        how many there are in all
  findings     what is wrong with the names of worker types, as below
  ledgers      a list, in the order of their names, of
    workerType, sound
    records                 how many were read
    firstSeq, lastSeq       of these; left out if there are none
    terms, grants           how many workers obeyed
    missedSlots             how many slots nobody claimed
    moreMissedSlots         true if there were more than were counted
    faults, warnings, notes how many there are
    counts                  how many there are by code
    findings                a list, in the order of their seq, of
      code, severity        fault, warning or note
      seq                   of the record; left out if it is about none
      supersededBy          seq of the reset or override by which no worker obeys it;
                            left out if there is none
      text, remedy          for people
  warning      what the store warns of; left out if it warns of nothing
  requestUnits the store's charges for the command: total, and byOperation; left out if
               it charges nothing

Times are RFC 3339 in UTC with milliseconds.`

func (a *app) verifyCommand() *cobra.Command {
	o := verification.Options{Timeout: defaultTimeout}
	output := "text"
	c := &cobra.Command{
		Use:   "verify [--worker-type TYPE]",
		Short: "Check that whole ledgers keep the protocol's rules",
		Long:  verifyHelp,
		Example: `  leasectl verify
  leasectl verify --worker-type invoice-export --strict
  leasectl verify --output json | jq '.ledgers[].findings[] | select(.severity == "fault")'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.awaited(c)
			if err := a.usage(c); err != nil {
				return err
			}
			o.JSON = output == "json"
			out := verification.Output{Writer: a.shown}
			if isTerminal(a.stderr) {
				// It has the names of valid worker types, and numbers.
				out.Progress = func(text string) { _, _ = fmt.Fprintf(a.stderr, "\r%s\x1b[K", text) }
				defer out.Progress("")
			}
			return verification.Run(c.Context(), t, o, out)
		},
	}
	flags := c.Flags()
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (default: all)", workerType)
	option(a, flags, &output, "output", "text|json", "how to show what was found (default text)", oneOf("text", "json"))
	flags.BoolVar(&o.Strict, "strict", false, "fail if there are warnings, too")
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long to wait for each answer of the store (default 10s)", duration(time.Millisecond, time.Hour))
	return c
}
