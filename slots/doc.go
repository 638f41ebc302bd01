// Package slots divides time into slots, for each of which a lease is allotted.
//
// A slot is a half-open interval [Start, End) of UTC. A [Schedule] partitions time: a slot
// ends where the next one starts. Slots depend on the schedule alone, so workers with the
// same schedule agree on every boundary without talking to each other. The package reads no
// clock. All schedules are immutable and safe for concurrent use.
//
// # Intervals
//
// [Every] counts from one fixed instant, Monday 1970-01-05T00:00:00Z. So all workers see the
// same grid, across midnight and for intervals longer than a day. Intervals that divide a
// week start on the hour, the midnight or the Monday.
//
// [EveryFrom] counts from another time of that Monday: every 90 minutes from 00:30 is
// 00:30, 02:00, 03:30 and so on, in UTC.
//
// # Cron
//
// [Cron] takes five fields (minute, hour, day of month, month, day of week), or @hourly, @daily,
// @midnight, @weekly, @monthly, @yearly or @annually. A slot lasts from one firing to the next. The
// default zone is UTC. Fields are those of crontab(5), as cronie and Vixie cron read it, parsed by
// [github.com/robfig/cron/v3]:
//
//	5  5,9  9-17  9-17/2  *  */5  5/10    a number, a list, a range, steps; 5/10 is 5-59/10
//	JAN  MON-FRI  sun                     months and days of the week, in any case
//	0 and 7                               Sunday, also in ranges: 5-7, SAT-SUN
//	?                                     the same as *, in a day field
//	L  L-3  LW  15W                       of the month: the last day, the third before it, the last
//	                                      day from Monday to Friday, and that nearest to the 15th
//	FRIL  MON#2                           of the month: the last Friday, the second Monday
//
// A day must match both day fields if one of them begins with *, as in */2. Otherwise it
// must match either of them: 0 0 13 * FRI fires on each 13th and each Friday.
//
// What other programs take for a spec is refused, with what to write instead: six and seven
// fields of Quartz, Spring and AWS, the H of Jenkins, systemd's OnCalendar, and a step that is
// longer than its field, such as */90. What isn't refused has the firings that it has there.
//
// In a literal of options, [Must] makes a schedule in one expression:
//
//	Schedule: slots.Must(slots.Cron("0 2 * * *", "Europe/Berlin")),
//
// # Several specs, holidays, and many jobs at one time
//
// [Join] has the boundaries of several schedules. [Except] leaves out the boundaries of some
// dates; the slot before them goes on. [Spread] moves all boundaries later by one constant
// time, which the name of a job chooses: of a thousand jobs at each hour, few begin in the same
// second. They go together in this order.
//
//	weekdays := slots.Must(slots.Join(
//		slots.Must(slots.Cron("0 2 * * 1-5", "Europe/Berlin")), slots.Must(slots.Cron("0 12 * * 6", "Europe/Berlin")),
//	))
//	working := slots.Must(slots.Except(weekdays, "2026-12-24..2026-12-26", "2027-01-01"))
//	schedule := slots.Must(slots.Spread(working, 10*time.Minute, "report"))
//
// # Daylight saving time
//
// When the clocks of a zone change, an hour of local time is skipped or repeated:
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
// (Australia/Lord_Howe), by two hours (Antarctica/Troll), or by a whole day where a country
// moved across the date line. Pacific/Apia had no 2011-12-30; firings of that day are made up
// for when 2011-12-31 begins. After such a gap (12 h or more) even a spec that fires in every
// hour makes up for skipped times: a date which occurs once a year isn't lost.
//
// The rules of zones come from the machine's tz database or, if it has none, from the copy
// that is linked into the program ([time.LoadLocation]). Machines with different releases of
// the database can disagree about slots. Workers report that, and do the job of a local time
// once. UTC doesn't have this problem.
//
// # Bounds
//
// No slot is longer than [MaxInterval]. A spec that needs longer slots, such as one for
// 29 February only, is refused, and so are dates that leave no boundary for that long. If a slot
// of a year is longer because a zone's offset changed, the time after MaxInterval is a separate
// slot. No slot is shorter than [MinInterval]. The slots of a cron schedule last at least a
// minute, except where the offset changed by seconds (before 1973).
//
// Schedules cover the years 1 to 9999 of UTC. Outside them, and where a slot would
// reach outside, they return the zero [Slot].
//
// # Text
//
// A schedule has a text form, which [Parse] reads:
//
//	every 5m
//	every 1h30m from 00:30
//	cron */10 8-18 * * 1-5
//	cron 0 2 * * * Europe/Berlin
//	cron @hourly
//	cron 0 12 * * 6 + cron 0 2 * * 1-5 except 2026-12-24..2026-12-26,2027-01-01
//	cron 0 2 * * * Europe/Berlin shifted 7m21.482s
//
// The last one is what [Spread] made: the text has the time that was chosen, and not the name.
// Two schedules with the same text are the same schedule, as far as releases of the tz
// database agree; those with different texts may have the same slots. See [Same].
package slots
