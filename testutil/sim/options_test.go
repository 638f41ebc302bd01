package sim

import (
	"strings"
	"testing"
	"time"
)

func TestAllBadOptionsAreReportedAtOnce(t *testing.T) {
	err := Options{
		Workers: -1, Length: -time.Hour,
		Faults: Faults{Skew: -time.Second, Failed: 2, Stale: 0.5, Drift: 0.9, Unasked: 2},
	}.check()
	for _, want := range []string{"Workers is -1", "Length is -1h", "Faults.Skew is -1s", "Faults.Failed is 2", "Faults.Drift is 0.9", "2.50 for reads", "Faults.Unasked is 2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check() = %v, want %q in it", err, want)
		}
	}
	if err := (Options{}).check(); err != nil {
		t.Errorf("check() of nothing = %v", err)
	}
	for seed := range int64(1000) {
		for _, o := range []Options{Random(seed), RandomBeyond(seed)} {
			if err := o.check(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
}
