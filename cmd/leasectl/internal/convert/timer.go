package convert

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
)

// Timers is the jobs.yaml of timers of systemd. The service of each is among the files, or beside the timer.
func Timers(names ...string) ([]byte, error) {
	var f file
	for _, name := range names {
		switch filepath.Ext(name) {
		case ".service":
		case ".timer":
			if err := f.addTimer(name, names); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%s: is neither a .timer nor a .service", name)
		}
	}
	if len(f.jobs) == 0 {
		return nil, errors.New("no timer: name a file whose name ends in .timer")
	}
	return f.text()
}

// timed is a job that is made of a timer and its service.
type timed struct {
	*job
	unit
}

// addTimer adds a timer. names are those of all files.
func (f *file) addTimer(name string, names []string) error {
	u := unit{known: map[string]bool{}}
	if err := u.load(name); err != nil {
		return err
	}
	base := strings.TrimSuffix(filepath.Base(name), ".timer")
	service := filepath.Join(filepath.Dir(name), cmp.Or(u.last("Timer", "Unit"), base+".service"))
	for _, other := range names {
		if filepath.Base(other) == filepath.Base(service) {
			service = other
		}
	}
	if err := u.load(service); err != nil {
		return err
	}
	t := timed{f.add(base, name), u}
	t.addSchedule()
	if err := t.addCommand(); err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	if t.addSpan("timeout", t.last("Service", "TimeoutStartSec")); t.get("timeout") == nil {
		t.addSpan("timeout", t.last("Service", "RuntimeMaxSec"))
	}
	t.set("maxAttempts", 1)
	t.setUnlessEmpty("user", t.last("Service", "User"))
	t.setUnlessEmpty("dir", strings.TrimPrefix(t.last("Service", "WorkingDirectory"), "-"))
	for _, line := range t.all("Service", "Environment") {
		for _, word := range t.words(line) {
			if name, value, ok := strings.Cut(word, "="); ok && name != "" {
				t.setEnv(name, value)
			}
		}
	}
	t.lackAll(t.others())
	return nil
}

// addSchedule adds when it runs.
func (t *timed) addSchedule() {
	var all specs
	zone := ""
	for i, calendar := range t.all("Timer", "OnCalendar") {
		spec, in, err := cronOf(calendar)
		if err == nil && i > 0 && in != zone {
			err = errors.New("the zones differ, and a job has one")
		}
		if err != nil {
			t.lack("OnCalendar=%s: %v", calendar, err)
			continue
		}
		all, zone = append(all, spec), in
	}
	if len(all) > 0 {
		t.set("schedule", all)
		if here, err := jobfile.Zone(); zone == "" && err == nil {
			zone = here
		}
		t.setUnlessEmpty("zone", strings.TrimPrefix(zone, "UTC"))
	}
	for _, key := range []string{"OnUnitActiveSec", "OnUnitInactiveSec"} {
		text := t.last("Timer", key)
		every, ok := span(text)
		switch {
		case text == "":
		case !ok || t.get("schedule") != nil || t.get("every") != nil:
			t.lack("%s=%s", key, text)
		default:
			t.lack("%s counts from the last run: slots are aligned to the clock", key)
			t.setSpan("every", every)
		}
	}
	t.addSpan("spread", t.last("Timer", "RandomizedDelaySec"))
	if slices.Contains([]string{"true", "yes", "on", "1"}, t.last("Timer", "Persistent")) {
		t.set("catchUp", "newest")
	}
}

// addCommand adds what the service runs.
func (t *timed) addCommand() error {
	var commands [][]string
	for _, line := range t.all("Service", "ExecStart") {
		if special := line[:len(line)-len(strings.TrimLeft(line, "@-:+!|"))]; special != "" {
			t.lack("%s in front of a command", special)
			line = line[len(special):]
		}
		if strings.Contains(line, "$") {
			t.lack("$NAME in a command, which isn't replaced: write the command as a text, which a shell reads")
		}
		if strings.Contains(strings.ReplaceAll(line, "%%", ""), "%") {
			t.lack("specifiers such as %%i in a command")
		}
		if command := t.words(strings.ReplaceAll(line, "%%", "%")); len(command) > 0 && command[0] != "" {
			commands = append(commands, command)
		}
	}
	switch len(commands) {
	case 0:
		return errors.New("has no ExecStart")
	case 1:
		t.set("command", commands[0])
		return nil
	}
	var lines []string
	for _, command := range commands {
		for i, word := range command {
			quoted, ok := display.Word(word)
			if !ok {
				return fmt.Errorf("%.40q can't be part of a shell's command", word)
			}
			command[i] = quoted
		}
		lines = append(lines, strings.Join(command, " "))
	}
	t.set("command", strings.Join(lines, " &&\n"))
	return nil
}

// codedEscape matches an escape that words doesn't replace: a character by its number, after a backslash that isn't escaped.
var codedEscape = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*(\\(?:x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))`)

// words splits a line, and says which escapes in it have no equivalent.
func (t *timed) words(line string) []string {
	if coded := codedEscape.FindStringSubmatch(line); coded != nil {
		t.lack("%s and other characters by their numbers", coded[1])
	}
	return words(line)
}

// addSpan adds a time span, unless it is none.
func (t *timed) addSpan(key, text string) {
	if d, ok := span(text); ok {
		t.setSpan(key, d)
	} else if text != "" && strings.Trim(text, "0") != "" && text != "infinity" {
		t.lack("%s %s", key, text)
	}
}
