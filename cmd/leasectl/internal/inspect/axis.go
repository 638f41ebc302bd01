package inspect

import (
	"strings"
	"time"
)

// ticks are the distances between labels of an axis.
var ticks = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
}

// axis is the line of the times in UTC, with the date at midnight, and the line of the ticks, which marks now as well.
func (c chart) axis(columns int) []string {
	label := "15:04"
	step := ticks[len(ticks)-1]
	for _, each := range ticks {
		label = labelOf(each)
		if c.column(c.from.Add(each), columns)-c.column(c.from, columns) >= len(label)+2 {
			step = each
			break
		}
	}
	times, marks, free := blanks(columns), blanks(columns), 0
	for t := c.from.UTC().Truncate(step); t.Before(c.to); t = t.Add(step) {
		at := c.column(t, columns)
		text := t.Format(label)
		if step >= time.Minute && t.Equal(t.Truncate(24*time.Hour)) {
			text = t.Format(labelOf(24 * time.Hour))
		}
		if t.Before(c.from) || at < free || at+len(text) > columns {
			continue
		}
		copy(times[at:], []rune(text))
		free = at + len(text) + 1
		marks[at] = []rune(signTick)[0]
	}
	if at := c.column(c.now, columns); !c.now.Before(c.from) && at < columns {
		marks[at] = []rune(signNow)[0]
	}
	return []string{string(times), string(marks)}
}

// labelOf is how a time is written where ticks have that distance.
func labelOf(step time.Duration) string {
	switch {
	case step < time.Minute:
		return "15:04:05"
	case step < 24*time.Hour:
		return "15:04"
	default:
		return "01-02"
	}
}

// column is where a time lies.
func (c chart) column(t time.Time, columns int) int {
	return int(t.Sub(c.from) / max(c.to.Sub(c.from)/time.Duration(columns), 1))
}

func blanks(n int) []rune { return []rune(strings.Repeat(" ", n)) }
