package jobfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	defaultShell  = "/bin/sh"
	blanks        = " \t"
	userColumn    = "# slotlease: user column"
	noUserColumn  = "# slotlease: no user column"
	renameLine    = `write a comment "# name: …" with another name directly above this line`
	scheduleWords = 5
	atReboot      = "@reboot: is no time of the clock: let a systemd unit run it on each machine"
)

// nameComment gives the job of the next line a name.
var nameComment = regexp.MustCompile(`^#[ \t]*name:[ \t]*(.*)$`)

// crontab is the state between two lines of a crontab.
type crontab struct {
	*reader

	users bool     // lines have the user column
	env   []string // of the lines below
	shell string
	home  string
	zone  Option // by CRON_TZ, or the machine's
	name  word   // by the comment on the line above
	noted map[string]bool
}

// word is a word of a line.
type word struct {
	text         string
	line, column int
}

// readCrontab reads a crontab as cronie does.
func (r *reader) readCrontab(text string) {
	c := crontab{reader: r, shell: defaultShell, home: Home, noted: map[string]bool{}}
	var lines []word
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		begin := strings.TrimLeft(line, blanks)
		lines = append(lines, word{begin, len(lines) + 1, len(line) - len(begin) + 1})
	}
	why, ok := c.form(lines)
	if !ok {
		return
	}
	if slices.ContainsFunc(lines, isJob) { // A file without one may be anything.
		r.note(0, "a crontab with%s user column, %s", map[bool]string{true: " the", false: "out a"}[c.users], why)
	}
	for _, l := range lines {
		c.readLine(l)
	}
	c.forgetName()
}

// form finds out whether there is a user column, and why. It fails if either may be meant.
func (c *crontab) form(lines []word) (why string, ok bool) {
	for _, l := range lines {
		switch strings.Join(strings.Fields(l.text), " ") {
		case userColumn:
			c.users = true
			return "by its comment", true
		case noUserColumn:
			return "by its comment", true
		}
	}
	if path, err := filepath.Abs(c.file); err == nil && (path == "/etc/crontab" || inCronD(path)) {
		c.users = true
		return "by its path", true
	}
	var first *word
	for _, l := range lines {
		if !isJob(l) {
			continue
		}
		_, rest := l.schedule()
		user, command := rest.cut()
		if command.text == "" || !c.isUser(user.text) {
			return "as crontab -l shows it", true
		}
		first = cmp.Or(first, &user)
	}
	if first != nil {
		c.bad(first.line, first.column, "%q is a user or a command: write %q or %q above", first.text, userColumn, noUserColumn)
		return "", false
	}
	return "as crontab -l shows it", true
}

// inCronD reports that a file is in a directory cron.d.
func inCronD(name string) bool {
	path, err := filepath.Abs(name)
	return err == nil && filepath.Base(filepath.Dir(path)) == "cron.d"
}

// copies match names of what editors and package managers leave beside a file: another version of it.
var copies = regexp.MustCompile(`^[.#]|~$|\.(?:bak|orig|swp|dpkg-[a-z]+|ucf-[a-z]+|rpm(?:new|orig|save))$`)

// leftOut reports that cron takes no jobs from a file in cron.d, and notes that. The jobs of another version would run as well as
// those of the file.
func (r *reader) leftOut() bool {
	switch base := filepath.Base(r.file); {
	case !inCronD(r.file):
	case copies.MatchString(base):
		r.lose(0, "is left out, as by cron: its name is that of a copy")
		return true
	case strings.Contains(base, "."):
		r.lose(0, "is left out by Debian's cron, since its name has a dot, but not here")
	}
	return false
}

// isJob reports that a line is that of a job.
func isJob(l word) bool {
	_, _, isVariable, _ := variable(l.text)
	return l.text != "" && l.text[0] != '#' && !isVariable
}

// readLine reads one line.
func (c *crontab) readLine(l word) {
	if m := nameComment.FindStringSubmatch(l.text); m != nil {
		c.forgetName()
		c.name = word{strings.TrimRight(m[1], blanks), l.line, l.column + len(l.text) - len(m[1])}
		return
	}
	if isJob(l) {
		c.readJob(l)
		c.name = word{}
		return
	}
	c.forgetName()
	if strings.HasPrefix(l.text, "#") {
		return
	}
	if name, value, ok, err := variable(l.text); err != nil {
		c.bad(l.line, l.column, "%s: %w", name, err)
	} else if ok {
		c.set(l, name, value)
	}
}

// forgetName says that the name of the comment above is no job's.
func (c *crontab) forgetName() {
	if c.name.line > 0 {
		c.note(c.name.line, "names no job: no line of a job follows directly")
	}
	c.name = word{}
}

// readJob reads the line of a job.
func (c *crontab) readJob(l word) {
	if strings.HasPrefix(l.text, "-") { // In cronie: don't log it.
		l = word{l.text[1:], l.line, l.column + 1}
	}
	schedule, rest := l.schedule()
	var user word
	if c.users {
		user, rest = rest.cut()
	}
	command, input := standardInput(rest.text)
	switch {
	case schedule == "@reboot" && c.crontabs:
		c.lose(l.line, "%s", atReboot)
		return
	case schedule == "@reboot":
		c.bad(l.line, l.column, "%s", atReboot)
		return
	case strings.Trim(command, blanks) == "":
		want := map[bool]string{true: "a user and a command", false: "a command"}[c.users]
		c.bad(l.line, l.column, "no command: a line has five fields (minute, hour, day of month, month, day of week) or a word such as @daily, and %s", want)
		return
	}
	j := Job{
		Place: Place{c.file, l.line, l.column}, Name: c.name.text, User: user.text,
		Dir: c.home, Env: slices.Clone(c.env),
	}
	named := Place{c.file, cmp.Or(c.name.line, l.line), cmp.Or(c.name.column, l.column)}
	if c.name.line > 0 {
		c.checkName(j.Name, named)
	} else {
		j.Name = lineName(schedule, user.text, rest.text)
	}
	j.Command, j.Stdin = []string{c.shell, "-c", command}, input
	j.Options = []Option{{j.Place, "cron", schedule}}
	if zone, ok := c.inZone(j.Place); !ok {
		return
	} else if zone.Value != "UTC" {
		j.Options = append(j.Options, zone)
	}
	// As cron, run it once, whatever its exit code is.
	j.Options = append(j.Options, Option{j.Place, "once-per-slot", "true"}, Option{j.Place, "max-attempts", "1"})
	c.add(j, named, renameLine)
}

// lineName is the name of a job that has none: the same for the same line on each machine and in each version.
func lineName(schedule, user, command string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{schedule, user, command}, "\x00")))
	return "cron-" + hex.EncodeToString(sum[:5])
}

// inZone is the time zone of the lines below: CRON_TZ's, or that of the machine.
func (c *crontab) inZone(at Place) (zone Option, ok bool) {
	if c.zone.Value != "" {
		return c.zone, true
	}
	name, err := c.machine.zone()
	if err != nil {
		if !c.noted["zone"] {
			c.bad(at.Line, at.Column, "%w: set CRON_TZ above, such as CRON_TZ=Europe/Berlin", err)
		}
		c.noted["zone"] = true
		return zone, false
	}
	c.zone = Option{at, "zone", name}
	if name != "UTC" {
		c.note(at.Line, "without CRON_TZ the times are those of this machine's time zone, %s", name)
	}
	return c.zone, true
}

// schedule is the schedule at the beginning of a line, its words a blank apart, and what follows.
func (w word) schedule() (schedule string, rest word) {
	n := scheduleWords
	if strings.HasPrefix(w.text, "@") {
		n = 1
	}
	rest = w
	var words []string
	for range n {
		var next word
		next, rest = rest.cut()
		words = append(words, next.text)
	}
	return strings.Join(words, " "), rest
}

// cut is the first word, and what follows it.
func (w word) cut() (first, rest word) {
	end := strings.IndexAny(w.text, blanks)
	if end < 0 {
		end = len(w.text)
	}
	begin := len(w.text) - len(strings.TrimLeft(w.text[end:], blanks))
	return word{w.text[:end], w.line, w.column}, word{w.text[begin:], w.line, w.column + begin}
}

// inInput says what % is after the first: the end of a line.
var inInput = strings.NewReplacer(`\%`, "%", "%", "\n")

// standardInput is the command of a line, up to its first %, and the lines after it. A percent sign is \% in both.
func standardInput(text string) (command, input string) {
	end := 0
	for ; end < len(text) && text[end] != '%'; end++ {
		if text[end] == '\\' {
			end++
		}
	}
	command, input = text[:min(end, len(text))], text[min(end+1, len(text)):]
	if input = inInput.Replace(input); input != "" && !strings.HasSuffix(input, "\n") {
		input += "\n"
	}
	return strings.ReplaceAll(command, `\%`, "%"), input
}
