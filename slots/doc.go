// Package slots divides time into slots, for each of which a lease is allotted.
//
// A slot is a half-open interval [Start, End) of UTC. A [Schedule] partitions time:
// every instant lies in exactly one slot, and a slot ends where the next one starts.
// Slots depend on the schedule alone, not on when or where they are computed. So
// workers with the same schedule agree on every boundary without talking to each
// other. The package is pure: it reads no clock. All schedules are immutable and safe
// for concurrent use.
//
// # Intervals
//
// [Every] counts from one fixed instant, Monday 1970-01-05T00:00:00Z. If workers
// counted from the local midnight, they would disagree: with 7 minutes, the boundary
// after 23:59 would be 00:02 for a worker that counts from yesterday's midnight, and
// 00:07 for one that starts at 00:00:30. With a fixed anchor all see the same grid,
// across midnight and for intervals longer than a day. Intervals that divide a week
// start on the hour, the midnight or the Monday, as expected.
//
// # Cron
//
// [Cron] takes five fields (minute, hour, day of month, month, day of week), as
// parsed by [github.com/robfig/cron/v3], or @hourly, @daily, @midnight, @weekly,
// @monthly, @yearly or @annually. A slot lasts from one firing to the next. If both
// day fields are restricted, a day matches if either of them does, as usual with
// cron. The default zone is UTC.
//
// In a literal of options, [Must] makes a schedule in one expression:
//
//	Schedule: slots.Must(slots.Cron("0 2 * * *", "Europe/Berlin")),
//
// # Daylight saving time
//
// When the clocks of a zone change, an hour of local time is skipped or repeated. The
// hour field decides what happens then:
//
//   - A spec that fires in every hour (the hour field is "*", or amounts to it,
//     such as "0-23") follows elapsed time. It fires whenever the local clock shows
//     a matching minute: in both passes through a repeated hour, and not at all in a
//     skipped hour, because no time elapses there.
//   - Any other spec names local times, and each of them counts once. In a repeated
//     hour it fires in the first pass only. Skipped local times are made up for
//     together, at the first instant after the gap.
//
// In Europe/Berlin the local time goes from 02:00 to 03:00 on 2025-03-30 and from
// 03:00 back to 02:00 on 2025-10-26:
//
//	30 2 * * *       2025-03-29  02:30 CET   01:30Z
//	                 2025-03-30  03:00 CEST  01:00Z   02:30 doesn't exist
//	                 2025-03-31  02:30 CEST  00:30Z
//
//	30 2 * * *       2025-10-25  02:30 CEST  00:30Z
//	                 2025-10-26  02:30 CEST  00:30Z   not again at 02:30 CET
//	                 2025-10-27  02:30 CET   01:30Z
//
//	*/30 * * * *     2025-10-26  02:00 CEST, 02:30 CEST, 02:00 CET, 02:30 CET, 03:00 CET
//	                             always 30 min apart
//
//	*/30 0-5 * * *   2025-10-26  02:00 CEST, 02:30 CEST, 03:00 CET
//	                             the slot from 02:30 CEST lasts 90 min
//
// The same rules apply to every other change of a zone's offset: by half an hour
// (Australia/Lord_Howe), by two hours (Antarctica/Troll), or by a whole day where a
// country moved across the date line. Pacific/Apia had no 2011-12-30; firings of that
// day are made up for when 2011-12-31 begins. After such a gap (12 h or more) even a
// spec that fires in every hour makes up for skipped times, so that a date which
// occurs once a year isn't lost.
//
// The rules of zones come from the machine's tz database or, if it has none, from the
// copy that is linked into the program ([time.LoadLocation]). After a change of the
// law, machines with different releases of the database can disagree about slots.
// UTC doesn't have this problem.
//
// # Bounds
//
// No slot is longer than [MaxInterval]. A spec that needs longer slots, such as one
// for 29 February only, is refused. If a slot of a year is longer because a zone's
// offset changed, the time after MaxInterval is a separate slot. No slot is shorter
// than [MinInterval]. The slots of a cron schedule last at least a minute, except
// where the offset changed by seconds (before 1973).
//
// Schedules cover the years 1 to 9999 of UTC. Outside them, and where a slot would
// reach outside, they return the zero [Slot].
//
// # Text
//
// A schedule has a text form, which [Parse] reads:
//
//	every 5m
//	every 1h30m
//	cron */10 8-18 * * 1-5
//	cron 0 2 * * * Europe/Berlin
//	cron @hourly
//
// Two schedules with the same text are the same schedule.
package slots
