package inspect

import (
	"regexp"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
)

// colourOrder is what gives a terminal a colour.
var colourOrder = regexp.MustCompile(`\x1b\[[0-9]{1,2}m`)

// fitted is a picture whose lines are cut to the width of a terminal, so that the terminal doesn't break them; as it
// is if the width isn't known. Colours take no room.
func fitted(picture string, width int) string {
	if width <= 0 {
		return picture
	}
	lines := strings.Split(picture, "\n")
	for i, line := range lines {
		plain := colourOrder.ReplaceAllString(line, "")
		if display.Width(plain) <= width {
			continue
		}
		var b strings.Builder
		room, rest := width-1, line
		for rest != "" && room > 0 {
			at := colourOrder.FindStringIndex(rest)
			if at != nil && at[0] == 0 {
				b.WriteString(rest[:at[1]])
				rest = rest[at[1]:]
				continue
			}
			text := rest
			if at != nil {
				text = rest[:at[0]]
			}
			rest = rest[len(text):]
			if w := display.Width(text); w <= room {
				b.WriteString(text)
				room -= w
				continue
			}
			b.WriteString(strings.TrimSuffix(display.Clip(text, room+1), "…"))
			break
		}
		b.WriteString("…")
		if plain != line {
			b.WriteString("\x1b[0m")
		}
		lines[i] = b.String()
	}
	return strings.Join(lines, "\n")
}
