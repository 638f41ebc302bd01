package jobfile

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

// variable reads a line NAME=value, with blanks around the sign and quotes around either as in cron. Like there nothing in the
// value is expanded.
func variable(text string) (name, value string, ok bool, err error) {
	name, value, ok = strings.Cut(text, "=")
	quoted, _ := unquoted(strings.Trim(name, blanks))
	if name = strings.Trim(name, blanks); quoted != name {
		name = quoted
	} else if strings.ContainsFunc(name, unicode.IsSpace) {
		ok = false // It is a job whose command has the sign.
	}
	if !ok || name == "" {
		return "", "", false, nil
	}
	value, closed := unquoted(strings.Trim(value, blanks))
	if !closed {
		err = errors.New("the value begins with a quote, which must end it, too")
	}
	return name, value, true, err
}

// unquoted is a text without the quotes around it, and whether each that begins it ends it, too.
func unquoted(text string) (inner string, closed bool) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		return text, true
	}
	end := strings.IndexByte(text[1:], text[0]) + 1
	return text[1:max(end, 1)], end > 0 && end == len(text)-1
}

// ignored are the variables that mean something to cron and nothing here, and what to do.
var ignored = map[string]string{
	"MAILTO":       "nobody gets the output by mail: it goes to that of leasectl",
	"RANDOM_DELAY": "jobs begin on time: spread is an option in jobs.yaml",
	"LOGNAME":      "it is always the user's",
	"USER":         "it is always the user's",
}

// set sets a variable for the lines below.
func (c *crontab) set(at word, name, value string) {
	if why, is := ignored[name]; is && value != "" && !c.noted[name] {
		c.noted[name] = true
		c.lose(at.line, "%s is ignored: %s", name, why)
	}
	switch name {
	case "LOGNAME", "USER":
		return
	case "SHELL":
		if c.shell = value; value == "" {
			c.shell = defaultShell
		}
	case "HOME":
		if c.home = value; value == "" {
			c.home = Home
		}
	case "CRON_TZ":
		c.zone = Option{Place{c.file, at.line, at.column}, "zone", value}
	}
	c.env = slices.DeleteFunc(slices.Clone(c.env), func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
	c.env = append(c.env, name+"="+value)
}
