package convert

import (
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
)

// shell is by which jobs.yaml runs a command that is a text.
const shell = "/bin/sh"

// Crontabs is the jobs.yaml of crontabs. Its jobs have the names that leasectl cron gives them by the crontabs.
func Crontabs(names ...string) ([]byte, error) {
	jobs, notes, err := jobfile.ReadCrontabs(names...)
	if err != nil {
		return nil, err
	}
	var f file
	for _, n := range notes {
		text := n.String() + ": " + n.Text
		if n.Lost {
			text = lacks("%s", text)
		}
		f.about = append(f.about, text)
	}
	for _, from := range jobs {
		j := f.add(from.Name, from.Place.String())
		for _, o := range from.Options {
			switch key := jobfile.KeyOf(o.Name); key {
			case "oncePerSlot": // It is the default.
			case "maxAttempts":
				n, _ := strconv.Atoi(o.Value)
				j.set(key, n)
			case "schedule":
				j.set(key, specs{o.Value})
			default:
				j.set(key, o.Value)
			}
		}
		if from.Command[0] == shell {
			j.set("command", from.Command[len(from.Command)-1])
		} else {
			j.set("command", from.Command)
		}
		j.setUnlessEmpty("stdin", from.Stdin)
		j.setUnlessEmpty("user", from.User)
		j.setUnlessEmpty("dir", from.Dir)
		for _, pair := range from.Env {
			name, value, _ := strings.Cut(pair, "=")
			j.setEnv(name, value)
		}
	}
	return f.text()
}
