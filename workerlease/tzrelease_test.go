package workerlease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// released is a cron schedule in a zone, by a release of the tz database that says what the zone
// adds to UTC.
type released struct {
	slots.Schedule // in UTC

	zone  string
	added time.Duration
}

func (s released) here(slot slots.Slot) slots.Slot {
	return slots.Slot{Start: slot.Start.Add(-s.added), End: slot.End.Add(-s.added)}
}

func (s released) At(t time.Time) slots.Slot   { return s.here(s.Schedule.At(t.Add(s.added))) }
func (s released) Next(t time.Time) slots.Slot { return s.here(s.Schedule.Next(t.Add(s.added))) }
func (s released) String() string              { return s.Schedule.String() + " " + s.zone }
func (s released) Location() *time.Location    { return time.FixedZone(s.zone, int(s.added/time.Second)) }

func TestALocalTimeIsServedOnceByTwoReleasesOfTheTzDatabase(t *testing.T) {
	for _, spec := range []string{"0 2 * * *", "0 2,14 * * *", "30 1 * * 1-5", "0 23 1,15 * *", "0 2 * * 1", "0 * * * *", "*/15 * * * *", "0 */3 * * *"} {
		for _, added := range [][2]time.Duration{
			{6 * time.Hour, 5 * time.Hour}, {-8 * time.Hour, -7 * time.Hour}, {5*time.Hour + 30*time.Minute, 6 * time.Hour},
		} {
			for seed := range *changeSeeds {
				t.Run(fmt.Sprintf("%s, %v and %v, seed %d", spec, added[0], added[1], seed), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						twoReleases(t, spec, added, rand.New(rand.NewPCG(uint64(seed), uint64(len(spec)))))
					})
				})
			}
		}
	}
}

// twoReleases runs workers of both, of which those of one stop and come back.
func twoReleases(t *testing.T, spec string, added [2]time.Duration, r *rand.Rand) {
	ledger, in := memory.New(memory.Options{}), slots.Must(slots.Cron(spec, ""))
	job := workerlease.Job{CatchUp: workerlease.CatchUp(r.IntN(2))}
	length := in.At(t0.AddDate(0, 0, 10)).Length()
	var ran []string
	byTime, byLocal := map[time.Time]bool{}, map[time.Time]bool{}
	begin := func(n int) *workerlease.WorkerLease {
		s := released{in, "Asia/Almaty", added[n]}
		client := workerlease.NewClient(ledger, workerlease.ClientOptions{})
		w, err := client.StartTask(context.Background(), workerlease.Options{WorkerType: "report", Schedule: s, Job: &job}, func(_ context.Context, l workerlease.Lease) error {
			local := l.Slot.Start.Add(s.added)
			ran = append(ran, fmt.Sprintf("%s local, by +%v, missed %v, at %s", local.Format(time.DateTime), s.added, l.Missed, time.Now().UTC().Format(time.DateTime)))
			equal := slots.Same(s, released{in, "", added[1-n]}, l.Slot.Start)
			if byTime[l.Slot.Start] || !equal && byLocal[local] {
				t.Errorf("run twice: %s", ran[len(ran)-1])
			}
			byTime[l.Slot.Start], byLocal[local] = true, true
			time.Sleep(time.Second)
			return nil
		})
		must(t, err)
		return w
	}
	stop := func(w *workerlease.WorkerLease) {
		must(t, w.StopLeasing(context.Background()))
	}
	time.Sleep(10*24*time.Hour + time.Duration(r.Int64N(int64(length))))
	began := time.Now()
	steady, other := begin(0), begin(1)
	told := ""
	for range 3 {
		time.Sleep(length + time.Duration(r.Int64N(int64(2*length))))
		told += steady.Status().Mismatch + other.Status().Mismatch
		stop(other)
		time.Sleep(time.Duration(r.Int64N(int64(2 * length))))
		other = begin(1)
	}
	differ := !slots.Same(in, released{in, "", added[0] - added[1]}, t0)
	if differ != strings.Contains(told, "release of the tz database") {
		t.Errorf("slots differ: %v, and Status says of it %q", differ, told)
	}
	ended := time.Now()
	stop(steady)
	stop(other)
	// The steady worker sees to it that nothing is lost.
	for slot := range slots.Upcoming(released{in, "", added[0]}, began.Add(time.Minute)) {
		if !slot.Start.Before(ended.Add(-time.Minute)) {
			break
		}
		if local := slot.Start.Add(added[0]); !byTime[slot.Start] && !byLocal[local] {
			t.Errorf("lost: %s local; ran %s", local.Format(time.DateTime), strings.Join(ran, "\n"))
		}
	}
}
