package slots

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

// madeUpZone is a zone whose offset is offsets[0] until changes[0], and so on, in
// seconds.
func madeUpZone(t *testing.T, changes, offsets []int32) *time.Location {
	t.Helper()
	// The first version of the TZif format (RFC 8536).
	data := append([]byte("TZif"), make([]byte, 16)...)
	for _, n := range []int{0, 0, 0, len(changes), len(offsets), 4} {
		data = binary.BigEndian.AppendUint32(data, uint32(n))
	}
	for _, c := range changes {
		data = binary.BigEndian.AppendUint32(data, uint32(c))
	}
	for i := range changes {
		data = append(data, byte(i+1))
	}
	for _, o := range offsets {
		data = binary.BigEndian.AppendUint32(data, uint32(o))
		data = append(data, 0, 0)
	}
	data = append(data, "XXX\x00"...)
	loc, err := time.LoadLocationFromTZData("Made/Up", data)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestLocalTimesCountOnceWhenTheClocksChangeTwiceInAnHour(t *testing.T) {
	// At 10:00Z the local clock goes from 12:00 to 11:00, at 10:20Z from 11:20 to
	// 11:50, and at 10:40Z from 12:10 to 11:10.
	base := int32(1_700_000_000 / daySeconds * daySeconds)
	loc := madeUpZone(t,
		[]int32{base + 36000, base + 37200, base + 38400},
		[]int32{7200, 3600, 5400, 1800})
	at := func(clock string) int64 {
		u, err := time.Parse("15:04", clock)
		if err != nil {
			t.Fatal(err)
		}
		return int64(base) + int64(u.Hour()*3600+u.Minute()*60)
	}
	for _, c := range []struct {
		spec string
		want []string // in UTC
	}{
		// Local times 11:45, 12:00, then 12:15 and so on after the last change.
		{"*/15 0-13 * * *", []string{"09:45", "10:30", "11:45", "12:00"}},
		// Every quarter of an hour that the clock shows: 11:45, 11:00, 11:15, 12:00, 11:15.
		{"*/15 * * * *", []string{"09:45", "10:00", "10:15", "10:30", "10:45", "11:00"}},
	} {
		f, err := parseFields(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		s := &cronSchedule{fields: f, spec: c.spec, loc: loc}
		var got, want, back []int64
		for u := at("09:40"); len(got) < len(c.want); {
			u = s.nextFiring(u)
			got = append(got, u)
		}
		for u := got[len(got)-1]; len(back) < len(c.want); u-- {
			u = s.lastFiring(u)
			back = append(back, u)
		}
		slices.Reverse(back)
		for _, clock := range c.want {
			want = append(want, at(clock))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q fires at %v, want %v (%v)", c.spec, got, want, c.want)
		}
		if !slices.Equal(back, want) {
			t.Errorf("%q fires, going back, at %v, want %v (%v)", c.spec, back, want, c.want)
		}
	}
}

func TestStretchesMeetInEveryLeapYear(t *testing.T) {
	loc, err := loadZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	u := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	last := time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	n := 0
	for u < last {
		s := stretchAt(loc, u)
		if s.start > u || s.end <= u {
			t.Fatalf("stretchAt(%v) = [%v, %v), want it to contain the instant", time.Unix(u, 0).UTC(), time.Unix(s.start, 0).UTC(), time.Unix(s.end, 0).UTC())
		}
		for _, v := range []int64{s.start, s.end - 1} {
			if _, offset := time.Unix(v, 0).In(loc).Zone(); int64(offset) != s.offset {
				t.Fatalf("the offset at %v is %d, want %d as in all of the stretch", time.Unix(v, 0).UTC(), offset, s.offset)
			}
		}
		u = s.end
		n++
	}
	if n > 20*5 {
		t.Errorf("20 years have %d stretches, want some 3 or 4 a year", n)
	}
}
