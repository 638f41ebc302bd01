package storekit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
)

func TestHostsThatTakeWritesAreFoundByTheirProcesses(t *testing.T) {
	t.Parallel()
	silent := Host{Name: "c", Process: "3", Writes: true, Err: errors.New("no answer")}
	for name, c := range map[string]struct {
		hosts []Host
		says  string
	}{
		"a primary and a standby":            {[]Host{{Name: "a", Process: "1", Writes: true}, {Name: "b", Process: "2"}}, ""},
		"two names of one server":            {[]Host{{Name: "a", Process: "1", Writes: true}, {Name: "b", Process: "1", Writes: true}}, ""},
		"one that said nothing":              {[]Host{{Name: "a", Process: "1", Writes: true}, silent}, ""},
		"two servers":                        {[]Host{{Name: "a", Process: "1", Writes: true}, {Name: "b", Process: "2", Writes: true}}, "two servers take writes, a and b"},
		"two servers, and others in between": {[]Host{{Name: "a", Process: "1", Writes: true}, silent, {Name: "d"}, {Name: "b", Process: "2", Writes: true}}, "a and b"},
	} {
		flaw, is := SplitBrain("server", c.hosts)
		if is != (c.says != "") || !strings.Contains(flaw.What, c.says) {
			t.Errorf("%s: SplitBrain() = %+v, %v, want %q", name, flaw, is, c.says)
		}
	}
}

func TestAHostThatIsSilentIsWaitedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		hosts := AskHosts(t.Context(), clock.New(), CheckHosts, []string{"a", "b"}, func(ctx context.Context, i int) (Host, error) {
			if i == 1 {
				<-ctx.Done()
				return Host{}, ctx.Err()
			}
			return Host{Process: "1"}, nil
		})
		if took := time.Since(began); took != CheckHosts || hosts[0].Err != nil || hosts[0].Name != "a" || hosts[1].Err == nil || hosts[1].Name != "b" {
			t.Errorf("AskHosts() = %+v after %v, want a alone after %v", hosts, took, CheckHosts)
		}
		synctest.Wait()
	})
}

func TestClocksAreComparedWithThatOfTheServerInUse(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	known := Clocks{"c": {Ahead: 7 * ms}, "gone": {Ahead: time.Hour}}
	hosts := []Host{
		{Name: "a", Process: "1", Ahead: 100 * ms, Within: ms},
		{Name: "b", Process: "2", Ahead: -3000 * ms, Within: 2 * ms},
		{Name: "c", Err: errSilent},
		{Name: "same", Process: "1", Ahead: time.Hour},
	}
	got := ClocksFrom(hosts, "1", known)
	if want := (Clock{-3100 * ms, 3 * ms}); len(got) != 2 || got["b"] != want || got["c"] != known["c"] {
		t.Errorf("ClocksFrom() = %+v, want those of b and c", got)
	}
	if got.Most() != 3103*ms {
		t.Errorf("Most() = %v, want 3.103s", got.Most())
	}
	if texts := got.Beyond(100 * ms); len(texts) != 1 || !strings.Contains(texts[0], "the clock of b is 3.1s behind that") {
		t.Errorf("Beyond(100ms) = %q, want b", texts)
	}
	if texts := got.Beyond(3100 * ms); len(texts) != 0 {
		t.Errorf("Beyond(3.1s) = %q, want none: it isn't sure", texts)
	}
	if got := ClocksFrom(hosts[1:3], "1", known); len(got) != 1 {
		t.Errorf("ClocksFrom() without the server in use = %+v, want what was known", got)
	}
}
