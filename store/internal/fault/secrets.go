package fault

import (
	"slices"
	"strconv"
	"strings"
)

// Secrets are the texts that must not be shown.
type Secrets []string

// Add takes in the forms in which a message may hold a secret. Each is also
// hidden as it looks inside a quoted string. Empty forms are left out.
func (s *Secrets) Add(forms ...string) {
	for _, f := range forms {
		quoted := strconv.Quote(f)
		for _, form := range []string{f, quoted[1 : len(quoted)-1]} {
			if form != "" && !slices.Contains(*s, form) {
				*s = append(*s, form)
			}
		}
	}
	// A long form goes before one that it contains.
	slices.SortStableFunc(*s, func(a, b string) int { return len(b) - len(a) })
}

// Scrub replaces the secrets in a message.
func (s Secrets) Scrub(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}
