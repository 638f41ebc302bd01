package slots_test

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/slots"
)

func Example() {
	s, err := slots.Parse("every 5m")
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2025, 1, 1, 12, 1, 30, 0, time.UTC)
	fmt.Println("now ", s.At(at))
	fmt.Println("next", s.Next(at))
	// Output:
	// now  [2025-01-01T12:00:00Z, 2025-01-01T12:05:00Z)
	// next [2025-01-01T12:05:00Z, 2025-01-01T12:10:00Z)
}

func ExampleEvery() {
	s, err := slots.Every(90 * time.Minute)
	fmt.Println(s, err)
	_, err = slots.Every(time.Millisecond)
	fmt.Println(err)
	// Output:
	// every 1h30m <nil>
	// every 1ms: the interval must be at least 100ms
}

// The clocks in Berlin skip the hour from 02:00 to 03:00 on 2025-03-30.
func ExampleCron() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	s := slots.Must(slots.Cron("30 2 * * *", "Europe/Berlin"))
	for slot := range slots.Upcoming(s, time.Date(2025, 3, 29, 0, 0, 0, 0, berlin)) {
		fmt.Println(slot.Start.In(berlin).Format("2006-01-02 15:04 MST"), "for", slot.Length())
		if slot.Start.In(berlin).Day() == 31 {
			break
		}
	}
	// Output:
	// 2025-03-29 02:30 CET for 23h30m0s
	// 2025-03-30 03:00 CEST for 23h30m0s
	// 2025-03-31 02:30 CEST for 24h0m0s
}

// Must makes a schedule in a literal of options, as workerlease.Options has it.
func ExampleMust() {
	options := struct{ Schedule slots.Schedule }{
		Schedule: slots.Must(slots.Cron("0 2 * * *", "Europe/Berlin")),
	}
	fmt.Println(options.Schedule)

	defer func() { fmt.Println("panic:", recover()) }()
	slots.Must(slots.Cron("0 25 * * *", ""))
	// Output:
	// cron 0 2 * * * Europe/Berlin
	// panic: cron "0 25 * * *": end of range (25) above maximum (23): 25
}

// Two specs for one job, not at Christmas, at the job's own place in the first ten minutes.
func ExampleSpread() {
	s := slots.Must(slots.Join(slots.Must(slots.Cron("0 2 * * 1-5", "Europe/Berlin")), slots.Must(slots.Cron("0 12 * * 6", "Europe/Berlin"))))
	s = slots.Must(slots.Except(s, "2026-12-24..2026-12-26"))
	s = slots.Must(slots.Spread(s, 10*time.Minute, "report"))
	fmt.Println(s)
	fmt.Println(s.At(time.Date(2026, 12, 25, 0, 0, 0, 0, time.UTC)))
	// Output:
	// cron 0 12 * * 6 Europe/Berlin + cron 0 2 * * 1-5 Europe/Berlin except 2026-12-24..2026-12-26 shifted 1m37.564s
	// [2026-12-23T01:01:37.564Z, 2026-12-28T01:01:37.564Z)
}

func ExampleUpcoming() {
	s := slots.Must(slots.Cron("0 9-17/4 * * MON-FRI", ""))
	n := 0
	for slot := range slots.Upcoming(s, time.Date(2025, 1, 3, 12, 0, 0, 0, time.UTC)) {
		fmt.Println(slot)
		if n++; n == 3 {
			break
		}
	}
	// Output:
	// [2025-01-03T13:00:00Z, 2025-01-03T17:00:00Z)
	// [2025-01-03T17:00:00Z, 2025-01-06T09:00:00Z)
	// [2025-01-06T09:00:00Z, 2025-01-06T13:00:00Z)
}
