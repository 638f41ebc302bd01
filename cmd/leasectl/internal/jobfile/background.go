package jobfile

import (
	"path/filepath"
	"strings"
)

// noteBackground notes a line for a shell that ends in &: cron lets go on what that leaves running.
func (r *reader) noteBackground(j Job) {
	if len(j.Command) == 3 && j.Command[1] == "-c" && strings.HasSuffix(filepath.Base(j.Command[0]), "sh") && endsInBackground(j.Command[2]) {
		r.lose(j.Line, "the last & lets the shell end at once, and what it leaves running is killed then: leave that & out, or let wait follow")
	}
}

// endsInBackground reports that a line for a shell ends in a single & that isn't quoted, apart from blanks and a comment.
func endsInBackground(line string) bool {
	last, before := ' ', ' ' // the newest of the line that isn't blank, and what is directly before it
	quote, previous := rune(0), ' '
	escaped, comment := false, false
	for _, c := range line {
		plain := false
		switch {
		case comment:
			comment = c != '\n'
			continue
		case escaped:
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '#' && strings.ContainsRune(" \t\n;&|(", previous):
			comment = true
			continue
		default:
			plain = true
		}
		if !plain {
			c = 'x' // It means nothing to the shell.
		}
		if !strings.ContainsRune(" \t\n", c) {
			last, before = c, previous
		}
		previous = c
	}
	return last == '&' && !strings.ContainsRune("&<>|", before)
}
