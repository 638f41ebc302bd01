package storekit

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

func TestADateHeaderIsAStampOfASecond(t *testing.T) {
	t.Parallel()
	d := Dates{Skew: 250 * time.Millisecond, Server: "s3.example"}
	want := store.Stamp{Time: time.Date(2026, time.March, 2, 12, 0, 7, 0, time.UTC), Granularity: time.Second, MaxAge: time.Second, Skew: 250 * time.Millisecond, Server: "s3.example"}
	for _, c := range []struct {
		date, age string
		want      store.Stamp
	}{
		{"Mon, 02 Mar 2026 12:00:07 GMT", "", want},
		{"Mon, 02 Mar 2026 12:00:07 GMT", "0", want},
		{"Mon, 02 Mar 2026 12:00:07 GMT", "5", store.Stamp{}},
		{"yesterday", "", store.Stamp{}},
		{"", "", store.Stamp{}},
		{"Thu, 01 Jan 0001 00:00:00 GMT", "", store.Stamp{}},
	} {
		reply := &http.Response{Header: http.Header{}}
		reply.Header.Set("Date", c.date)
		if c.age != "" {
			reply.Header.Set("Age", c.age)
		}
		if got := d.Stamp(reply); got != c.want {
			t.Errorf("the stamp of Date %q, Age %q = %+v, want %+v", c.date, c.age, got, c.want)
		}
	}
	if got := d.Stamp(nil); !got.IsZero() {
		t.Errorf("the stamp of no reply = %+v, want none", got)
	}
	ctx, newest := Noting(t.Context())
	Note(ctx, want)
	Note(ctx, store.Stamp{})
	if got := newest(); got != want {
		t.Errorf("what was noted = %+v, want %+v", got, want)
	}
	Note(context.Background(), want)
}
