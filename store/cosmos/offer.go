package cosmos

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The provisioning that Azure accepts, in RU/s.
const (
	leastManual, manualStep       = 400, 100
	leastAutoscale, autoscaleStep = 1000, 1000
	mostUnits                     = 1_000_000
)

// offer is the throughput that Init requests: at most one kind.
type offer struct {
	manual, autoscale int
	serverless        bool
}

// properties are the SDK's form of what the URI and the options ask for, or nil for none.
func (in offer) properties(options offer) (*azcosmos.ThroughputProperties, error) {
	both := func(a, b int) bool { return a != 0 && b != 0 && a != b }
	manual, autoscale := cmp.Or(options.manual, in.manual), cmp.Or(options.autoscale, in.autoscale)
	serverless := in.serverless || options.serverless
	switch {
	case both(in.manual, options.manual) || both(in.autoscale, options.autoscale):
		return nil, fmt.Errorf("options: %d RU/s in the URI and %d in Options: give one", cmp.Or(in.manual, in.autoscale), cmp.Or(options.manual, options.autoscale))
	case manual != 0 && autoscale != 0 || serverless && (manual != 0 || autoscale != 0):
		return nil, errors.New("options: set only one of throughput, autoscale and serverless")
	case serverless:
		return nil, nil
	case autoscale != 0:
		p := azcosmos.NewAutoscaleThroughputProperties(int32(autoscale))
		return &p, checkUnits("autoscale", autoscale, leastAutoscale, autoscaleStep)
	}
	manual = cmp.Or(manual, DefaultThroughput)
	p := azcosmos.NewManualThroughputProperties(int32(manual))
	return &p, checkUnits("throughput", manual, leastManual, manualStep)
}

func checkUnits(name string, n, least, step int) error {
	if n < least || n > mostUnits || n%step != 0 {
		return fmt.Errorf("options: %s %d RU/s: must be a multiple of %d from %d to %d", name, n, step, least, mostUnits)
	}
	return nil
}

// Provision says, for people, what throughput Init gives a container that it creates.
func (l *Ledger) Provision() string {
	if l.offer == nil {
		return "serverless"
	}
	if most, ok := l.offer.AutoscaleMaxThroughput(); ok {
		return fmt.Sprintf("autoscale, at most %d RU/s", most)
	}
	units, _ := l.offer.ManualThroughput()
	return fmt.Sprintf("%d RU/s", units)
}
