// Package slots cuts time into the slots that leases are allotted for.
//
// A slot is a half-open interval [Start, End) of UTC. A [Schedule] partitions
// time: every instant lies in exactly one slot, and a slot ends where the next
// one starts. Slots depend on the schedule alone, never on when or where it is
// asked, so workers that share a schedule agree on every boundary without
// talking to each other. The package is pure: it reads no clock. All schedules
// are immutable and safe for concurrent use.
//
// # Intervals
//
// [Every] counts from one fixed instant, Monday 1970-01-05T00:00:00Z. Counting
// from the local midnight instead would make workers disagree: with 7 minutes, the
// boundary after 23:59 would be 00:02 for a worker that counts from yesterday's
// midnight, and 00:07 for one that is started at 00:00:30. Counted from a fixed
// anchor, both see the same grid, across midnight and also when the interval
// is longer than a day. Intervals that divide a week start on the hour, the
// midnight or the Monday that one expects.
//
// # Cron
//
// [Cron] takes five fields (minute, hour, day of month, month, day of week), as
// parsed by [github.com/robfig/cron/v3], or @hourly, @daily, @midnight, @weekly,
// @monthly, @yearly or @annually. A slot lasts from one firing to the next. If
// both day fields are restricted, a day that matches either of them matches,
// as usual with cron. The zone is UTC unless one is named.
//
// # Daylight saving time
//
// In a zone, a change of the clocks skips an hour of local time or shows one
// twice. What happens then depends on the hour field:
//
//   - A spec that fires in every hour (the hour field is "*", or amounts to it,
//     such as "0-23") follows elapsed time. It fires whenever the local clock shows
//     a matching minute: in both passes through a doubled hour, and not at all
//     for an hour that is skipped, since no time elapses there.
//   - Any other spec names local times, and each of them counts once. In
//     a doubled hour it fires in the first pass only. Local times that are
//     skipped are made up for at the first instant after the gap, together.
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
// The same rules hold for every other change of a zone's offset: by half an hour
// (Australia/Lord_Howe), by two (Antarctica/Troll), or by a whole day where a
// country moved across the date line. Pacific/Apia had no 2011-12-30; what
// falls on that day is made up for when 2011-12-31 begins. That is also the
// one case in which a spec that fires in every hour makes up for what was skipped
// (a gap of 12 h or more), so that a day which occurs once a year isn't lost.
//
// The rules of zones come from the machine's own tz database, or from the copy
// that is linked into the program if there is none ([time.LoadLocation]).
// Machines with different releases of it can disagree about the slots after a
// change of the law; UTC never has that trouble.
//
// # Bounds
//
// No slot is longer than [MaxInterval]. A spec that would need longer slots,
// such as one for 29 February only, is refused; and should a year's slot be longer
// because a zone's offset changed, the rest after MaxInterval is a slot of its own.
// No slot is shorter than [MinInterval]: those of a cron schedule last a minute
// or more, less only where the offset changes by seconds (before 1973).
//
// Schedules know the years 1 to 9999 of UTC. Outside of them, and where a
// slot would reach outside, they return the zero [Slot].
//
// # Text
//
// A schedule has a text form, which [Parse] reads back:
//
//	every 5m
//	every 1h30m
//	cron */10 8-18 * * 1-5
//	cron 0 2 * * * Europe/Berlin
//	cron @hourly
//
// Two schedules with the same text are the same schedule.
package slots
