package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/estimate"
	"github.com/slotlease/slotlease/workerlease"
)

const planHelp = `Estimate what workers of one type will cost: operations and request units (RU) of
Azure Cosmos DB for each slot and each day, and the peak before a boundary. Next to
it stand a lock that is renewed every 2 s, and the original of this protocol.

The command connects to nothing. --store is cosmos (Cosmos DB for NoSQL), mongo, s3,
azblob (Azure Blob Storage) or kubernetes; the URI of such a store will do, too.
MongoDB bills no request units: the tables leave them out, and JSON has 0. For those of
Azure Cosmos DB for MongoDB (RU), give the URI of the account.

For s3, azblob and kubernetes the tables count requests by their kinds, and records
that are kept. S3 and Azure Blob Storage bill each request. The prices are examples,
whose date and source, and what they rest on, stand below the tables. --price gives
those of your region: of 1,000 requests (s3) or 10,000 (azblob), and of a GB and month.

Request units are estimates, from figures that Microsoft publishes; the assumptions
are listed below the tables. Status().Charges of a worker reports the real charges,
and so does "leasectl run" at its end. An account with provisioned throughput costs
the same, however much of it is used.

With --output json it prints one object:

  store, workers, schedule
  consistency    of cosmos and mongo
  slotsPerDay, leadMs, stepMs    of an uneven schedule, the mean number and the
                                 shortest lead
  failoverWithinMs, partsPerSlot left out without --failover-within
  perSlot        a list of
    who          winner, loser, trimming (its share) or all
    workers      their number; left out for trimming
    operations   now, tail, append, get and trim of one of them; deleted records
    requestUnits
    requests     of s3, azblob, kubernetes: how many of each kind
    usd          of s3, azblob: what they cost
  perDay         a list of
    protocol     slotlease, roster (on top of that, without --no-roster), renewing
                 or (of cosmos and mongo) original
    requests, requestUnits
    peakRequestUnitsPerSecond
    requestsByKind, usd, usdPerMonth
                 as in perSlot
  leadRequestUnitsPerSecond      over the lead, on average
  trimming       everySlots, everyRecords, deleted, requestUnits: of one trim,
                 which comes at once
  kept           of s3, azblob, kubernetes: records (after a trim), recordsAtMost
                 (before), presences, bytes (of all, in the mean), usdPerMonth
  prices         of s3, azblob: region, date, source, basis (what they rest on; left
                 out if --price gives all), perRequests, usd (of so many requests of
                 each kind), usdPerGBMonth, changed (by --price)
  assumptions    a list of texts`

// planFlags are the options of plan.
type planFlags struct {
	scheduleFlags

	workers     int
	lead, step  time.Duration
	failover    time.Duration
	consistency string
	prices      []string
	output      string
}

func (a *app) planCommand() *cobra.Command {
	f := &planFlags{workers: 3, consistency: estimate.Strong, output: "table"}
	c := &cobra.Command{
		Use:   "plan --store KIND (--every DURATION | --cron SPEC [--zone ZONE])",
		Short: "Estimate what workers will cost: operations, request units, prices",
		Long:  planHelp,
		Example: `  leasectl plan --store cosmos --workers 10 --every 5m
  leasectl plan --store mongo --cron '0 2 * * *' --failover-within 1m
  leasectl plan --store s3 --every 5m --price put=0.0054,list=0.0054,get=0.00043`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			kind, unbilled := a.planKind(c)
			o := a.planOptions(f, c.Flags())
			o.Store, o.Unbilled = kind, unbilled
			a.planStore(&o, f, c.Flags())
			if err := a.usage(c); err != nil {
				return err
			}
			return a.showPlan(estimate.Of(o), f.output)
		},
	}
	a.planFlags(c, f)
	return c
}

// planOptions are the options of the estimate, but for the store. What is wrong is noted.
func (a *app) planOptions(f *planFlags, flags *pflag.FlagSet) estimate.Options {
	o := estimate.Options{Consistency: f.consistency, Workers: f.workers, Slot: f.every}
	o.Timing, _ = a.timing(workerlease.Options{
		WorkerType: "plan", Schedule: a.schedule(f.scheduleFlags, flags), Lead: f.lead, Step: f.step, FailoverWithin: f.failover,
	})
	return o
}

// planStore fits the options to the kind of the store. What is wrong is noted.
func (a *app) planStore(o *estimate.Options, f *planFlags, flags *pflag.FlagSet) {
	if o.Store == "" {
		return
	}
	if floor := estimate.Floors[o.Store]; f.failover > 0 && f.failover < floor {
		a.bad("--failover-within is %v: must be at least %v on %s, which knows the time too poorly for shorter parts of a slot", f.failover, floor, o.Store)
	}
	if names := estimate.KindNames(o.Store); names != nil {
		if _, given := given(flags, "consistency"); given {
			a.bad("--consistency: %s has one level alone", o.Store)
		}
		o.Consistency = ""
	}
	var err error
	if o.Prices, err = pricesIn(f.prices, o.Store); err != nil {
		a.bad("--price: %w", err)
	}
}

// pricesIn reads prices, each as NAME=DOLLARS.
func pricesIn(texts []string, kind string) (map[string]float64, error) {
	names := estimate.PriceNames(kind)
	if names == nil && len(texts) > 0 {
		return nil, fmt.Errorf("%s bills no requests by their kinds", kind)
	}
	prices := map[string]float64{}
	for _, text := range texts {
		name, amount, _ := strings.Cut(text, "=")
		n, err := strconv.ParseFloat(amount, 64)
		if !slices.Contains(names, name) || err != nil || !(n >= 0 && n <= mostPrice) {
			return nil, fmt.Errorf("%.60q: give NAME=DOLLARS, from 0 to %d; the names are %s", text, mostPrice, strings.Join(names, ", "))
		}
		prices[name] = n
	}
	return prices, nil
}

// mostPrice is the highest price that is believed, in dollars.
const mostPrice = 1000

func (a *app) showPlan(e estimate.Estimate, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(a.shown)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(e.Report())
	}
	a.printf("%s", e.Text(a.colour()))
	return nil
}

func (a *app) planFlags(c *cobra.Command, f *planFlags) {
	flags := c.Flags()
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "interval" { // as in LeaseInterval
			name = "every"
		}
		return pflag.NormalizedName(name)
	})
	option(a, flags, &f.workers, "workers", "N", "how many workers contend (default 3)", number(1, 100_000))
	option(a, flags, &f.every, "every", "DURATION", "length of the slots, aligned to the clock; --interval is the same", anyDuration)
	flags.StringVar(&f.cron, "cron", "", "cron `SPEC` (five fields): a slot lasts from one firing to the next")
	flags.StringVar(&f.zone, "zone", "", "`ZONE` of the cron spec, such as Europe/Berlin (default UTC)")
	option(a, flags, &f.lead, "lead", "DURATION", "how long before a boundary claims open (default a quarter of the slot, at most 10s and half of --failover-within)", anyDuration)
	option(a, flags, &f.step, "step", "DURATION", "distance between the turns of two priorities (default lead/10)", anyDuration)
	option(a, flags, &f.failover, "failover-within", "DURATION", "how soon others take over a slot whose worker dies: 80ms to half a slot (default: they don't)", nonZero)
	levels := []string{estimate.Strong, estimate.BoundedStaleness, estimate.Session, estimate.ConsistentPrefix, estimate.Eventual}
	option(a, flags, &f.consistency, "consistency", "LEVEL", "consistency at which the account is read: "+strings.Join(levels, ", ")+" (default strong)", oneOf(levels...))
	flags.Lookup("consistency").Value.(*flagValue[string]).choices = levels
	flags.StringSliceVar(&f.prices, "price", nil, "your region's prices in dollars, as `NAME=DOLLARS`, for s3 ("+strings.Join(estimate.PriceNames(estimate.S3), ", ")+") and azblob ("+strings.Join(estimate.PriceNames(estimate.AzureBlob), ", ")+")")
	option(a, flags, &f.output, "output", "table|json", "how to show it (default table)", oneOf("table", "json"))
}

// planKind reads the kind of the store, and whether it bills no request units. What is wrong is noted.
func (a *app) planKind(c *cobra.Command) (kind string, unbilled bool) {
	n, ok := a.named(c)
	if !ok {
		return "", false
	}
	kind, err := kindOf(n.text)
	switch {
	case n.from == "":
		a.bad("no store: name its kind, --store " + plannedKinds)
		a.try = "--store cosmos"
	case err != nil:
		a.bad("%s: %w", n.from, err)
	}
	return kind, kind == estimate.Mongo && !billsUnits(n.text)
}

// billsUnits reports that a MongoDB URI names a host that bills request units.
func billsUnits(uri string) bool {
	_, after, _ := strings.Cut(uri, "://")
	if i := strings.IndexAny(after, "/?"); i >= 0 {
		after = after[:i]
	}
	for host := range strings.SplitSeq(after[strings.LastIndex(after, "@")+1:], ",") {
		host, _, _ = strings.Cut(strings.ToLower(host), ":")
		for _, end := range estimate.RequestUnitHosts {
			if strings.HasSuffix(host, end) {
				return true
			}
		}
	}
	return false
}

// plannedKinds are the kinds of stores that there are estimates for.
const plannedKinds = "cosmos, mongo, s3, azblob or kubernetes"

// kindOf is the kind of a store that is named by it, or in any other way.
func kindOf(text string) (string, error) {
	scheme, _, _ := strings.Cut(text, ":")
	switch scheme {
	case "cosmos":
		return estimate.Cosmos, nil
	case "mongo", "mongodb", "mongodb+srv":
		return estimate.Mongo, nil
	case "s3":
		return estimate.S3, nil
	case "azblob":
		return estimate.AzureBlob, nil
	case "kubernetes", "k8s":
		return estimate.Kubernetes, nil
	case "sqlite":
		return "", errors.New("a SQLite file costs nothing: give --store " + plannedKinds)
	case "postgres", "postgresql", "mysql", "mariadb", "sqlserver", "redis", "rediss", "redis+sentinel", "rediss+sentinel", "etcd", "etcds":
		return "", errors.New("a server of your own bills no requests, so that there is nothing to estimate; give --store " + plannedKinds)
	}
	return "", errors.New("has no known kind: give --store " + plannedKinds)
}
