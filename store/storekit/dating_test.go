package storekit

import (
	"net/http"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
)

// dated is a reply with a date.
func dated(at time.Time, header ...string) *http.Response {
	r := &http.Response{Header: http.Header{"Date": {at.Format(http.TimeFormat)}}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func TestRequestsAreDatedByTheServicesTime(t *testing.T) {
	t.Parallel()
	c := clock.NewMock()
	c.Set(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	d := NewDating(c)
	if got := d.Now(); !got.Equal(c.Now()) {
		t.Errorf("Now() before any reply = %v, want the clock's %v", got, c.Now())
	}
	service := c.Now().Add(-3 * time.Hour)
	d.Learn(dated(service))
	c.Add(90 * time.Second)
	if got, want := d.Now(), service.Add(90*time.Second); !got.Equal(want) {
		t.Errorf("Now() 90 s after a reply = %v, want %v", got, want)
	}
	d.Learn(dated(service.Add(-time.Hour), "Age", "3600"))
	d.Learn(&http.Response{Header: http.Header{"Date": {"yesterday"}}})
	d.Learn(nil)
	if got, want := d.Now(), service.Add(90*time.Second); !got.Equal(want) {
		t.Errorf("Now() after replies without a date = %v, want %v", got, want)
	}
}

func TestARequestIsMisdatedByMoreThanServicesTolerate(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	d := NewDating(clock.NewMock())
	for off, want := range map[time.Duration]bool{
		0: false, 4 * time.Minute: false, -4 * time.Minute: false, 5 * time.Minute: true, -5 * time.Minute: true, time.Hour: true,
	} {
		if got := d.Misdated(at.Add(off), dated(at)); got != want {
			t.Errorf("Misdated() by %v = %v, want %v", off, got, want)
		}
	}
	if d.Misdated(time.Time{}, dated(at)) || d.Misdated(at.Add(time.Hour), nil) || d.Misdated(at.Add(time.Hour), dated(at, "Age", "9")) {
		t.Error("Misdated() without either date = true, want false")
	}
}
