package inspect

import (
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/store"
)

func TestSightingsHaveNoSlots(t *testing.T) {
	_, err := shown(t, planted(), Options{WorkerType: store.Sightings, Last: 1, Timeout: time.Minute})
	e, ok := errors.AsType[*exit.Error](err)
	const want = "slotlease.sightings has no slots: under this name workers record since when a record of a worker type can't be obeyed"
	if !ok || e.Code != exit.Usage || e.Error() != want {
		t.Errorf("inspect slots --worker-type %s = %v, want %q", store.Sightings, err, want)
	}
}
