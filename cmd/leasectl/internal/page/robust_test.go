package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store/memory"
)

func TestOneTypeIsLookedAtNowAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		start := time.Now().UTC().Truncate(time.Hour)
		for i := range 640 {
			r := recordtest.Grant(1, 0, "anna")
			r.WorkerType, r.Schedule = fmt.Sprintf("t%d", i), "every 1h"
			r.SlotStart, r.SlotEnd, r.WindowStart, r.WindowEnd = start, start.Add(time.Hour), start, start.Add(time.Hour)
			m.Put(r)
		}
		p := New(Options{Scrub: strings.Clone})
		p.cache = inspect.NewCache(m, fresh, eachType)
		if _, body := ask(p, request("GET", "/api/v1/status", "")); !strings.Contains(body, `"t639"`) {
			t.Fatal(body)
		}
		time.Sleep(lookEvery)
		r := recordtest.Grant(2, 1, "bert")
		r.WorkerType, r.Schedule = "t5", "every 1h"
		r.SlotStart, r.SlotEnd, r.WindowStart, r.WindowEnd = start.Add(time.Hour), start.Add(2*time.Hour), start.Add(time.Hour), start.Add(2*time.Hour)
		m.Put(r)
		if _, body := ask(p, request("GET", "/api/v1/slots?type=t5&n=5", "")); !strings.Contains(body, "bert") {
			t.Errorf("a second after a record was appended: %s, want bert's claim", body)
		}
	})
}

func TestWhoHangsUpSpoilsNoExamination(t *testing.T) {
	p, _ := served(t, Access{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // Its turn comes before its end in half of all cases.
		_, _ = p.health(gone)
	}
	code, body := ask(p, request("GET", "/api/v1/verify", ""))
	if code != 200 {
		t.Errorf("after somebody hung up: %d %s", code, body)
	}
	_, body = ask(p, request("GET", "/api/v1/doctor", ""))
	var found struct{ Sound bool }
	if err := json.Unmarshal([]byte(body), &found); err != nil || !found.Sound {
		t.Errorf("after somebody hung up, doctor says %s", body)
	}
}

func TestAnExaminationMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{takes: 20 * time.Second}
		h, end := hubOf(t, c)
		v := joined(t, h, subject{view: "health"})
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if got := v.next(); len(got) != 0 {
			t.Errorf("while it is examined came %q, want nothing", got)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if got := v.next(); len(got) != 1 || got[0] != "status" {
			t.Errorf("after an examination of 20 s came %q, want what it found alone", got)
		}
		v.leave()
		end()
	})
}

func TestABodyThatDoesntComeHoldsNoConnection(t *testing.T) {
	t.Parallel()
	p, _ := served(t, Access{})
	at := make(chan net.Addr, 1)
	go func() { _ = p.Serve(t.Context(), "127.0.0.1:0", func(a net.Addr) { at <- a }) }()
	c, err := net.Dial("tcp", (<-at).String())
	must(t, err)
	defer c.Close()
	_, _ = fmt.Fprintf(c, "POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(suites.Limit(3*patience, time.Hour))) // realtime: make prove judges it
	_, err = io.Copy(io.Discard, c)
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		t.Errorf("after %v the connection is still there", 3*patience)
	}
}
