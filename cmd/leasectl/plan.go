package main

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
)

// The kinds of stores that bill, or may.
const (
	kindCosmos = "cosmos"
	kindMongo  = "mongo"
)

// The consistency levels of an account.
const (
	strong  = "strong"
	bounded = "bounded-staleness"
	session = "session"
	prefix  = "consistent-prefix"
	loose   = "eventual"
)

const planHelp = `Tell what workers of one type will cost: operations and request units (RU) of
Azure Cosmos DB for each slot and each day, and the peak before a boundary, next
to a lock that is renewed every 2 s and to the original of this protocol.

Nothing is connected to. --store is cosmos (Cosmos DB for NoSQL) or mongo; any
store that can be named elsewhere stands for its kind. With mongo the request
units are those of Azure Cosmos DB for MongoDB (RU); other MongoDB servers bill
no operations, and the counts are what matters.

Request units are estimates, from figures that Microsoft publishes; they are
listed below the tables. What was really charged is told by Status().Charges of
a worker, and by "leasectl run" at its end. An account with provisioned throughput
is paid for by that, whatever is used of it.

With --output json it prints one object:

  store, consistency, workers, schedule
  slotsPerDay, leadMs, stepMs    of a schedule that is uneven, the mean number
                                 and the shortest lead
  failoverWithinMs, partsPerSlot left out without --failover-within
  perSlot        a list of
    who          winner, loser, trimming (its share) or all
    workers      how many of them there are; left out for trimming
    operations   now, tail, append, get, trim, of one of them; deleted records
    requestUnits
  perDay         a list of
    protocol     slotlease, renewing or original
    requests, requestUnits
    peakRequestUnitsPerSecond
  leadRequestUnitsPerSecond      over the lead, on average
  trimming       everySlots, everyRecords, deleted, requestUnits: of one trim, at
                 once
  assumptions    a list of texts`

// planFlags are the options of plan.
type planFlags struct {
	scheduleFlags

	workers     int
	lead, step  time.Duration
	failover    time.Duration
	consistency string
	output      string
}

func (a *app) planCommand() *cobra.Command {
	f := defaultPlan()
	c := &cobra.Command{
		Use:     "plan --store cosmos|mongo (--every DURATION | --cron SPEC [--zone ZONE])",
		Short:   "Tell what workers will cost: operations and request units",
		Long:    planHelp,
		Example: "  leasectl plan --store cosmos --workers 10 --every 5m",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			kind := a.planKind(c)
			schedule, shortest := a.schedule(f.scheduleFlags, c.Flags())
			a.checkFailover(f.failover, f.lead, c.Flags(), shortest)
			if err := a.usage(c); err != nil {
				return err
			}
			return a.showPlan(estimateOf(kind, f, schedule, shortest), f.output)
		},
	}
	a.planFlags(c, f)
	return c
}

func defaultPlan() *planFlags { return &planFlags{workers: 3, consistency: strong, output: "table"} }

func (a *app) planFlags(c *cobra.Command, f *planFlags) {
	flags := c.Flags()
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "interval" { // as in LeaseInterval
			name = "every"
		}
		return pflag.NormalizedName(name)
	})
	option(a, flags, &f.workers, "workers", "N", "how many workers contend (default 3)", number(1, 100_000, ""))
	option(a, flags, &f.every, "every", "DURATION", "length of the slots, aligned to the clock; --interval is the same", duration(-1<<63, 1<<63-1))
	flags.StringVar(&f.cron, "cron", "", "cron `SPEC` (five fields): a slot lasts from one firing to the next")
	flags.StringVar(&f.zone, "zone", "", "`ZONE` of the cron spec, such as Europe/Berlin (default UTC)")
	option(a, flags, &f.lead, "lead", "DURATION", "how long before a boundary claims open (default a quarter of the slot, at most 10s and half of --failover-within)", duration(0, priority.MaxLead))
	option(a, flags, &f.step, "step", "DURATION", "distance between the turns of two priorities (default lead/10)", duration(0, priority.MaxLead))
	option(a, flags, &f.failover, "failover-within", "DURATION", "how soon others take over a slot whose worker dies: 80ms to half a slot (default: they don't)", duration(leastFailover, slots.MaxInterval/2))
	levels := []string{strong, bounded, session, prefix, loose}
	option(a, flags, &f.consistency, "consistency", strings.Join(levels, "|"), "consistency at which the account is read (default strong)", oneOf(levels...))
	option(a, flags, &f.output, "output", "table|json", "how to show it (default table)", oneOf("table", "json"))
}

// planKind reads the kind of the store. What is wrong is noted.
func (a *app) planKind(c *cobra.Command) string {
	from, text := "--store", a.store
	if !c.Flags().Changed("store") {
		from, text = storeVariable, a.getenv(storeVariable)
	}
	kind, err := kindOf(text)
	switch {
	case text == "" && from == storeVariable:
		a.bad("no store: name its kind with --store cosmos or --store mongo")
		a.try = "--store cosmos"
	case err != nil:
		a.bad("%s: %w", from, err)
	}
	return kind
}

// kindOf is the kind of a store that is named by it, or in any other way.
func kindOf(text string) (string, error) {
	scheme, _, _ := strings.Cut(text, ":")
	switch scheme {
	case "cosmos":
		return kindCosmos, nil
	case "mongo", "mongodb", "mongodb+srv":
		return kindMongo, nil
	case "sqlite":
		return "", errors.New("a SQLite file costs nothing: use cosmos or mongo")
	}
	return "", errors.New("has no known kind: use cosmos or mongo")
}

// planRow is a row of what one slot takes.
type planRow struct {
	who     string
	workers int // 0 if it isn't about workers
	each    operations
	cost    cost
}

// planDay is a protocol's day.
type planDay struct {
	protocol string
	cost     cost
	peak     float64 // RU in the worst second
}

// estimate is what workers of one type will cost.
type estimate struct {
	kind, consistency string
	workers           int
	schedule          slots.Schedule
	winner, loser     operations
	slotsPerDay       float64
	shortest          time.Duration // slot
	cutting           cutting
	turns             priority.Turns
	rows              []planRow
	days              []planDay
	// trim is one trim, which comes at once.
	trim   cost
	prices prices
}

// estimateOf works out an estimate.
func estimateOf(kind string, f *planFlags, schedule slots.Schedule, shortest time.Duration) estimate {
	reads := 1.0
	if f.consistency == strong || f.consistency == bounded {
		reads = 2
	}
	slot := f.every
	if slot == 0 {
		slot = meanSlot(schedule)
	}
	e := estimate{
		kind: kind, consistency: f.consistency, workers: f.workers, schedule: schedule, slotsPerDay: perDay(slot), shortest: shortest,
		turns:  priority.NewTurns(leadOf(shortest, f.lead, f.failover), f.step, 0),
		prices: pricesOf(kind, reads),
	}
	e.cutting = cut(slot, e.turns.Lead, f.failover)
	e.winner, e.loser = e.cutting.claims(e.turns.Lead)
	extending, standing := e.cutting.extending(e.turns.Lead), e.cutting.standing(e.turns.Lead)
	trims := trimming(time.Duration(float64(slot) / e.cutting.parts))
	share := trims.times(e.cutting.parts / trimEvery)
	add := func(who string, workers int, each operations) cost {
		row := planRow{who, workers, each, e.prices.of(each)}
		e.rows = append(e.rows, row)
		return row.cost
	}
	n := float64(f.workers)
	add("winner", 1, e.winner.plus(extending))
	if f.workers > 1 {
		add("loser", f.workers-1, e.loser.plus(standing))
	}
	e.trim = e.prices.of(trims)
	add("trimming", 0, share)
	total := add("all", f.workers, e.claims().plus(extending).plus(standing.times(n-1)).plus(share))

	ask, decide := e.prices.original(n)
	renew := e.prices.renewing(n)
	e.days = []planDay{
		{"slotlease", total.times(e.slotsPerDay), e.peak()},
		{"renewing", renew.times(perDay(renewal)), renew.Units},
		{"original", ask.plus(decide).times(e.slotsPerDay), e.inSecond(max(ask.Units, decide.Units))},
	}
	return e
}

// peak is what may be charged in the worst second before a boundary, without
// trimming: all workers have one priority, so that they are spread over one turn,
// the winner at its start, and the others over its last three quarters. Of a turn
// longer than a second it is the mean: chance makes some seconds busier.
func (e estimate) peak() float64 {
	others := e.prices.of(e.loser).Units * float64(e.workers-1)
	if spread := e.turns.Step * 3 / 4; spread > time.Second {
		others *= float64(time.Second) / float64(spread)
	}
	return e.inSecond(e.prices.of(e.winner).Units + others)
}

// inSecond is what is charged in the worst second if units are in each slot, or at
// the end of each part of it.
func (e estimate) inSecond(units float64) float64 {
	return units * max(1, float64(time.Second)/float64(min(e.shortest, e.cutting.length)))
}

// overLead is what is charged over the lead, without trimming, per second.
func (e estimate) overLead() float64 {
	return e.prices.of(e.claims()).Units / max(e.turns.Lead.Seconds(), time.Millisecond.Seconds())
}

// claims are what all workers ask for in a slot, without trimming.
func (e estimate) claims() operations { return e.winner.plus(e.loser.times(float64(e.workers - 1))) }

// meanSlot is the mean length of the slots of a year, or of four if they are few.
func meanSlot(s slots.Schedule) time.Duration {
	from := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	n, last := 0, from
	for slot := range slots.Upcoming(s, from) {
		years := slot.Start.Sub(from).Hours() / 24 / 365
		if years > 4 || years > 1 && n >= 366 {
			break
		}
		if n == 0 {
			from = slot.Start
		}
		n, last = n+1, slot.End
	}
	return cmp.Or(last.Sub(from)/time.Duration(max(n, 1)), slots.MaxInterval)
}
