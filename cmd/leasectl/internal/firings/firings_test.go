package firings

import (
	"bytes"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
	"github.com/slotlease/slotlease/slots"
)

func TestTheNextSlotsAreShown(t *testing.T) {
	spring := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for name, l := range map[string]List{
		"every": Of(slots.Must(slots.Every(5*time.Minute)), "export", spring.Add(30*time.Second), 3),
		"cron":  Of(slots.Must(slots.Cron("30 2 * * *", "Europe/Berlin")), "", spring, 3),
		"back":  Of(slots.Must(slots.Cron("@daily", "America/New_York")), "", time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC), 2),
		"fine":  Of(slots.Must(slots.Every(250*time.Millisecond)), "", spring, 2),
	} {
		golden.Compare(t, name+".table", l.Text(false))
		var b bytes.Buffer
		if err := l.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, name+".json", b.String())
	}
}
