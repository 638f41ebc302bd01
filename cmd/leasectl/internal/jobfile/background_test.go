package jobfile

import (
	"strings"
	"testing"
)

func TestALineThatEndsInTheBackgroundIsKnown(t *testing.T) {
	for line, want := range map[string]bool{
		`sleep 5 && echo finished > file &`:    true,
		`nohup ./x > /dev/null 2>&1 &`:         true,
		"./x&  \t":                             true,
		`./x & # in the background`:            true,
		"./x &\n# it goes on\n":                true,
		`echo "a & b" &`:                       true,
		`echo 'it is' "\"" \' &`:               true,
		`./x & wait`:                           false,
		"./x &\nwait\n":                        false,
		`./x && ./y`:                           false,
		`./x &&`:                               false,
		`echo "a &"`:                           false,
		`echo 'a &'`:                           false,
		`echo \&`:                              false,
		`./x # a &`:                            false,
		`curl http://h/?a=b#c &`:               true,
		`./x 2>&1`:                             false,
		`./x >&`:                               false,
		``:                                     false,
		`echo "open &`:                         false,
		`find . -name '*.tmp' -delete \& done`: false,
	} {
		if got := endsInBackground(line); got != want {
			t.Errorf("endsInBackground(%q) = %v, want %v", line, got, want)
		}
	}
}

// The shell of such a line ends at once, and what it has left running is killed then. The run is one that succeeded.
func TestALineThatEndsInTheBackgroundIsNoted(t *testing.T) {
	const want = ": the last & lets the shell end at once, and what it leaves running is killed then: leave that & out, or let wait follow"
	for name, text := range map[string]string{
		"jobs:2":      "# name: x\n@daily sleep 5 && echo finished > file &\n",
		"jobs.yaml:2": "jobs:\n- {name: x, every: 1m, command: ./x &}\n",
		"cron.d/a:2":  "# slotlease: user column\n@daily root sleep 5 &%input\n",
	} {
		file, _, _ := strings.Cut(name, ":")
		_, notes, err := readText(t, file, text)
		if err != nil || len(notes) == 0 {
			t.Fatalf("%s: %v, %v", name, notes, err)
		}
		if got := notes[len(notes)-1]; got.String()+": "+got.Text != name+want || !got.Lost {
			t.Errorf("got %v, want %s", got, name+want)
		}
	}
	_, notes, err := readText(t, "jobs.yaml", "jobs:\n- {name: x, every: 1m, command: [./x, -c, a &]}\n- {name: y, every: 1m, command: ./x & wait}\n")
	if err != nil || len(notes) > 0 {
		t.Errorf("got %v, %v, want no notes", notes, err)
	}
}
