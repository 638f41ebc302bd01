package slots_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
)

var update = flag.Bool("update", false, "rewrite testdata/expressions.tsv")

// expression is a row of testdata/expressions.tsv: what the manual of a program has as a spec, and the
// next three firings from expressionsFrom on, or why it is refused.
type expression struct{ program, spec, gives string }

var expressionsFrom = time.Date(2026, 2, 27, 12, 34, 0, 0, time.UTC)

// refusedBy begins what a refused expression gives.
const refusedBy = "refused: "

func expressions(t *testing.T) (rows []expression) {
	t.Helper()
	file, err := os.ReadFile("testdata/expressions.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 3 {
			t.Fatalf("testdata/expressions.tsv: %q has %d cells, want 3", line, len(cells))
		}
		rows = append(rows, expression{cells[0], cells[1], cells[2]})
	}
	return rows
}

// next are the next firings by a function that knows each, as text.
func next(n int, following func(time.Time) time.Time) string {
	var texts []string
	for at := expressionsFrom; len(texts) < n; {
		if at = following(at); at.IsZero() {
			break
		}
		texts = append(texts, at.UTC().Format("Mon 2006-01-02 15:04"))
	}
	return strings.Join(texts, ", ")
}

// Each expression of a manual fires as that manual has it, which the oracle evaluates, or is refused in one
// line.
func TestExpressionsOfManuals(t *testing.T) {
	rows := expressions(t)
	if len(rows) < 300 {
		t.Errorf("testdata/expressions.tsv has %d expressions, want 300", len(rows))
	}
	for i, e := range rows {
		got := ""
		s, err := slots.Cron(e.spec, "")
		if err != nil {
			got = refusedBy + strings.TrimPrefix(err.Error(), "cron ")
			if strings.Contains(got, "\n") {
				t.Errorf("%s: Cron(%q) = %q, want one line", e.program, e.spec, err)
			}
		} else {
			got = next(3, func(at time.Time) time.Time { return s.Next(at).Start })
			meant := next(3, oracleOf(e.program, e.spec).Next)
			if got != meant {
				t.Errorf("%s: %q fires at\n%s, want as the manual says\n%s", e.program, e.spec, got, meant)
			}
			rows[i].gives = meant
		}
		if err != nil {
			rows[i].gives = got
		}
		if got != e.gives && !*update {
			t.Errorf("%s: %q gives\n%s, want\n%s", e.program, e.spec, got, e.gives)
		}
	}
	if *update {
		var b strings.Builder
		for _, e := range rows {
			b.WriteString(e.program + "\t" + e.spec + "\t" + e.gives + "\n")
		}
		if err := os.WriteFile("testdata/expressions.tsv", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	writeSpec     = regexp.MustCompile(`write "([^"]*)"`)
	writeItem     = regexp.MustCompile(`field "([^"]*)": .*; write (\S+)$`)
	writeInterval = regexp.MustCompile(`interval, "([^"]*)"`)
)

// Whoever follows the advice of a refusal gets the firings that the expression meant to the program it is of.
func TestAdviceFiresAsWasMeant(t *testing.T) {
	followed := 0
	for _, e := range expressions(t) {
		if e.program == "jenkins" || e.program == "systemd" || !strings.HasPrefix(e.gives, refusedBy) {
			continue
		}
		spec := ""
		switch {
		case writeSpec.MatchString(e.gives):
			spec = writeSpec.FindStringSubmatch(e.gives)[1]
		case writeItem.MatchString(e.gives):
			m := writeItem.FindStringSubmatch(e.gives)
			spec = strings.Join(oracleOf(e.program, e.spec).five, " ")
			spec = strings.ReplaceAll(strings.Replace(spec, m[1], m[2], 1), "?", "*")
		default:
			continue
		}
		if strings.Contains(e.gives, "Spread") {
			continue
		}
		s, err := slots.Cron(spec, "")
		if err != nil {
			t.Errorf("%s: %q is refused with the advice %q: %v", e.program, e.spec, spec, err)
			continue
		}
		o := oracleOf(e.program, e.spec)
		if strings.Contains(e.spec, "?/") || strings.HasPrefix(e.spec, "? ") || strings.Contains(e.spec, " ? * *") {
			o.five[0] = strings.Replace(o.five[0], "?", "*", 1) // cron has no ?, and whoever writes it takes it for a star
		}
		if got, want := next(5, func(at time.Time) time.Time { return s.Next(at).Start }), next(5, o.Next); got != want {
			t.Errorf("%s: %q is refused with the advice %q, which fires at\n%s, want\n%s", e.program, e.spec, spec, got, want)
		}
		followed++
	}
	if followed < 80 {
		t.Errorf("%d refusals say what to write instead, want 80", followed)
	}
}

// An interval in place of a step or a rate is as long, and begins where the step would have.
func TestAdviceOfAnIntervalIsAsLong(t *testing.T) {
	for spec, want := range map[string]string{
		"*/90 * * * *": "every 1h30m", "5/90 * * * *": "every 1h30m from 00:05", "*/61 * * * *": "every 1h1m", "0 */36 * * *": "every 36h",
		"30 */25 * * *": "every 25h from 00:30", "15 1/48 * * *": "every 48h from 01:15", "@every 90m": "every 1h30m",
		"*/10 * * * * *": "every 10s", "* * * * * ?": "every 1s", "0/5 * * ? * *": "every 5s", "rate(7 days)": "every 168h", "rate(1 minute)": "every 1m",
	} {
		_, err := slots.Cron(spec, "")
		if err == nil || !writeInterval.MatchString(err.Error()) || writeInterval.FindStringSubmatch(err.Error())[1] != want {
			t.Errorf("Cron(%q) = %v, want the advice %q", spec, err, want)
		}
		if s, err := slots.Parse(want); err != nil || s.String() != want {
			t.Errorf("Parse(%q) = %v, %v, want that schedule", want, s, err)
		}
	}
}
