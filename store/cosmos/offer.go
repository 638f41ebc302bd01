package cosmos

import (
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

// properties are the SDK's form of what the URI and the options ask for, or nil
// for none.
func properties(offers ...offer) (*azcosmos.ThroughputProperties, error) {
	var all offer
	for _, one := range offers {
		for _, n := range []struct{ to, from *int }{{&all.manual, &one.manual}, {&all.autoscale, &one.autoscale}} {
			if *n.to != 0 && *n.from != 0 && *n.to != *n.from {
				return nil, fmt.Errorf("options: %d RU/s in the URI and %d in Options: give one", *n.to, *n.from)
			}
			if *n.from != 0 {
				*n.to = *n.from
			}
		}
		all.serverless = all.serverless || one.serverless
	}
	switch {
	case all.manual != 0 && all.autoscale != 0 || all.serverless && (all.manual != 0 || all.autoscale != 0):
		return nil, errors.New("options: set only one of throughput, autoscale and serverless")
	case all.serverless:
		return nil, nil
	case all.autoscale != 0:
		if err := checkUnits("autoscale", all.autoscale, leastAutoscale, autoscaleStep); err != nil {
			return nil, err
		}
		p := azcosmos.NewAutoscaleThroughputProperties(int32(all.autoscale))
		return &p, nil
	case all.manual == 0:
		all.manual = DefaultThroughput
	}
	if err := checkUnits("throughput", all.manual, leastManual, manualStep); err != nil {
		return nil, err
	}
	p := azcosmos.NewManualThroughputProperties(int32(all.manual))
	return &p, nil
}

func checkUnits(name string, n, least, step int) error {
	if n < least || n > mostUnits || n%step != 0 {
		return fmt.Errorf("options: %s %d RU/s: must be a multiple of %d from %d to %d", name, n, step, least, mostUnits)
	}
	return nil
}
