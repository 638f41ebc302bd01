package position

import (
	"testing"
	"time"
)

func TestAServerThatGoesBackHasAnotherName(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var m Mark
	for i, c := range []struct {
		p              Position
		sent, received int
		want           string
	}{
		{Position{1, 50}, 1, 2, ""},
		{Position{1, 60}, 3, 6, ""},
		{Position{1, 55}, 4, 7, ""}, // overtaken
		{Position{}, 8, 9, ""},      // it doesn't say
		{Position{2, 10}, 10, 11, ""},
		{Position{2, 10}, 12, 15, ""}, // nothing new
		{Position{2, 9}, 13, 16, ", back at 2.9"},
		{Position{2, 11}, 17, 18, ", back at 2.9"},
		{Position{1, 99}, 19, 20, ", back at 1.99"},
	} {
		if got := m.Follow(c.p, at(c.sent), at(c.received)); got != c.want {
			t.Errorf("reply %d: Follow(%v) = %q, want %q", i, c.p, got, c.want)
		}
	}
	m.Forget()
	if got := m.Follow(Position{1, 1}, at(21), at(22)); got != "" {
		t.Errorf("Follow() of another line = %q, want no name", got)
	}
}
