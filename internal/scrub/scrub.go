// Package scrub takes secrets out of texts that are to be shown, such as a driver's
// error.
//
// A secret is taken out where secrets stand: as the password of a URI, the value of a
// parameter like AccountKey, or a token. Besides, a known secret is searched for, if it
// can't stand in a text by chance. A short or ordinary password can: to replace "e" or
// "localhost" everywhere would garble the text, and betray the password.
package scrub

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mask stands in place of a secret.
const Mask = "***"

// Secrets are those of one store. The zero Secrets knows none, and takes out what stands
// where secrets stand. It may be copied, and used at once by many, when it is complete.
type Secrets struct {
	logins []login
	known  []string
	public []string
}

// login is a user, with the colon after it, and the password.
type login struct{ user, password string }

// Hide takes in a secret as it stands in a URI, percent-encoded or not.
func (s *Secrets) Hide(secret string) {
	for _, form := range forms(secret) {
		if telling(form) && !slices.Contains(s.known, form) {
			s.known = append(s.known, form)
		}
	}
}

// HideUser takes in what stands before the @ in a URI: a user, and perhaps a colon and a
// password.
func (s *Secrets) HideUser(info string) {
	user, _, _ := strings.Cut(info, ":")
	s.Hide(user)
	s.hidePassword(info)
}

// HideLogin is HideUser for a URI of MongoDB with the parameters query. The user is a name there
// that may be shown, but for the id of a key (authMechanism=MONGODB-AWS), and for what may be a
// password without a user.
func (s *Secrets) HideLogin(info, query string) {
	_, password, _ := strings.Cut(info, ":")
	plain, err := url.QueryUnescape(query)
	switch plain = strings.ToLower(plain); {
	case err != nil, strings.Contains(plain, "aws"), password == "" && !unaided.MatchString(plain):
		s.HideUser(info)
	default:
		s.hidePassword(info)
	}
}

// unaided matches the mechanisms that need no password.
var unaided = regexp.MustCompile(`authmechanism=(?:mongodb-x509|mongodb-oidc|gssapi)(?:[&;]|$)`)

// hidePassword takes in the password of HideUser.
func (s *Secrets) hidePassword(info string) {
	user, password, _ := strings.Cut(info, ":")
	s.Hide(password)
	if password == "" {
		return
	}
	for _, name := range forms(user) {
		for _, form := range forms(password) {
			s.logins = append(s.logins, login{name + ":", form})
		}
	}
}

// Publish takes in texts that may be shown, such as hosts and databases. A secret, or as
// much of it as was found, may be shown if it is part of one.
func (s *Secrets) Publish(texts ...string) { s.public = append(s.public, texts...) }

// forms are those in which a message may hold a secret: as it is, decoded or encoded, and
// each as it looks inside a quoted string.
func forms(secret string) []string {
	all := []string{secret, strings.TrimRight(secret, "=")}
	for _, decode := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		if plain, err := decode(secret); err == nil {
			all = append(all, plain, url.QueryEscape(plain), url.PathEscape(plain))
		}
	}
	for _, form := range all {
		quoted := strconv.Quote(form)
		inJSON, _ := json.Marshal(form) // A string has no error.
		all = append(all, quoted[1:len(quoted)-1], string(inJSON[1:len(inJSON)-1]), html.EscapeString(form))
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(form string) bool { return form == "" })
}

// telling reports whether a text is hardly in another by chance: it has eight bytes of
// two kinds (letters, digits, others), or sixteen.
func telling(s string) bool {
	kinds := map[string]bool{}
	for _, r := range s {
		switch {
		case unicode.IsLetter(r):
			kinds["letter"] = true
		case unicode.IsDigit(r):
			kinds["digit"] = true
		default:
			kinds["other"] = true
		}
	}
	return len(s) >= 16 || len(s) >= 8 && len(kinds) > 1
}

// random reports whether a text is hardly the beginning of another by chance, as a date, a name
// or a sentence is: it has eight bytes, and a word that changes between letters and digits three
// times.
func random(s string) bool {
	changes, last := 0, rune(0)
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			changes, r = 0, 0
		case last != 0 && unicode.IsDigit(last) != unicode.IsDigit(r):
			changes++
		}
		if last = r; changes == 3 {
			return len(s) >= 8
		}
	}
	return false
}

// head is the shortest part of a secret that is searched for, because a message may have cut the
// rest off.
func head(secret string) string {
	for i := 8; i < len(secret); i++ {
		if random(secret[:i]) || i >= 16 && telling(secret[:i]) {
			return secret[:i]
		}
	}
	return secret
}

// isPart reports whether what was found of a secret, and what follows it, show that it is one: it
// is whole, or random, or a message may have cut it there, and it has a dozen letters.
func isPart(found, secret, rest string) bool {
	letters := 0
	for _, r := range found {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return found == secret || random(found) || letters >= 12 && cutOff.MatchString(rest)
}

// cutOff matches what follows a text that was cut off.
var cutOff = regexp.MustCompile("^(?:$|…|\\.\\.\\.|\\\\?[\"'`])")

// parameter matches the names of parameters whose values are secret: MongoDB's and
// Azure's. A lease's own token is none.
const parameter = `[\w%.-]*(?:password|secret|credential|authmechanismproperties|proxyusername|authorization|(?:account|access|master|shared)[_-]?key|(?:access|auth|id|refresh|sas|session)[_-]?token)[\w%.-]*|sig`

// named matches the name of a parameter up to its quoted value.
const named = `(?i)(?:\b|%26)(?:` + parameter + `)(?:\\?["'])? ?(?:[:=]|%3d) ?`

var secretName = regexp.MustCompile(`(?i)password|secret|credential|properties|proxyusername|authorization|token|^sig$`)

// IsSecret reports whether the value of a URI's parameter may be secret, by its name.
func IsSecret(name string) bool { return secretName.MatchString(name) }

// places are where secrets stand, and what to show there. The secret is the group that isn't
// empty. A text is searched only if it may hold one: a pattern takes 3 µs for a byte, and a page of
// metrics has 50,000.
var places = []struct {
	may     func(text string) bool
	pattern *regexp.Regexp
	mask    string
}{
	// The user and password of a URI.
	{holding("://"), regexp.MustCompile(`://([^\s"]*)@`), Mask + ":" + Mask},
	// The value of a parameter in a query, a connection string or a signature.
	{hasParameter, regexp.MustCompile(`(?i)(?:\b|%26)(?:` + parameter + `)(?:=| = |%3d)([^\s&;"']*?),?(?:[\s&;]|\\?["']|$)`), Mask},
	// The same, quoted, and as that looks inside a quoted string.
	{hasParameter, regexp.MustCompile(named + `(?:"((?:[^"\\]|\\.)*)|'((?:[^'\\]|\\.)*)|\\"((?:[^"\\]|\\\\\\.|\\[^"])*))`), Mask},
	// A token of Microsoft Entra ID.
	{holding("eyJ"), regexp.MustCompile(`\b(eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?)`), Mask},
}

// holding reports whether a text holds a part.
func holding(part string) func(string) bool {
	return func(text string) bool { return strings.Contains(text, part) }
}

// parameterAt matches the name of such a parameter, and secretParameter that at the end of what could be one.
var (
	parameterAt     = regexp.MustCompile(`(?i)(?:\b|%26)(?:` + parameter + `)`)
	secretParameter = regexp.MustCompile(`(?i)(?:\b|%26)(?:` + parameter + `)$`)
)

// hasParameter reports whether a text has a parameter whose value is secret, by its name. It looks at each
// part once: an encoded text is one long name, with a % every three bytes.
func hasParameter(text string) bool {
	seen := map[string]bool{}
	inside := func(r rune) bool { return !outsideName(r) }
	for {
		from := strings.IndexFunc(text, inside)
		if from < 0 {
			return false
		}
		name := text[from:]
		if to := strings.IndexFunc(name, outsideName); to >= 0 {
			name = name[:to]
		}
		text = text[from+len(name):]
		if at := max(strings.LastIndex(name, "%3d"), strings.LastIndex(name, "%3D")); at > 0 && parameterAt.MatchString(name[:at]) {
			return true
		}
		if !assigns(text) || seen[name] {
			continue
		}
		if seen[name] = true; secretParameter.MatchString(name) {
			return true
		}
	}
}

// assigns reports whether a value comes next, after a name that may be quoted.
func assigns(rest string) bool {
	for _, between := range []string{`\`, `"`, `'`, " "} {
		rest = strings.TrimPrefix(rest, between)
	}
	return rest != "" && strings.Contains(":=%", rest[:1])
}

// outsideName reports whether a rune is in no name of a parameter.
func outsideName(r rune) bool { return !inWord(r) && !strings.ContainsRune("%.-", r) }

// namesFile matches the name of a parameter whose value is a path, with what stands before that.
var namesFile = regexp.MustCompile(`(?i)file(?:\\?["'])? ?(?:[:=]|%3d) ?(?:\\?["'])?$`)

// span is a part of a text, and what to show in its place.
type span struct {
	from, to int
	mask     string
	// exact is what was found, if not by its place. It may be public.
	exact string
}

// Scrub returns a text without secrets. shown are texts that may be shown, besides those
// that were published. All secrets are found before any is taken out: of two that
// overlap, one would hide only a part of the other.
func (s Secrets) Scrub(text string, shown ...string) string {
	var spans []span
	for _, place := range places {
		if !place.may(text) {
			continue
		}
		for _, at := range place.pattern.FindAllStringSubmatchIndex(text, -1) {
			for group := 2; group < len(at); group += 2 {
				if at[group] < at[group+1] && !namesFile.MatchString(text[at[0]:at[group]]) {
					spans = append(spans, span{from: at[group], to: at[group+1], mask: place.mask})
				}
			}
		}
	}
	for _, l := range s.logins {
		spans = append(spans, l.passwords(text)...)
	}
	for _, secret := range s.known {
		for _, at := range find(text, secret, head(secret)) {
			if isPart(at.exact, secret, text[at.to:]) {
				spans = append(spans, at)
			}
		}
	}
	return cut(text, slices.DeleteFunc(spans, func(at span) bool {
		if at.exact == "" {
			return false
		}
		holds := func(public string) bool { return strings.Contains(public, at.exact) }
		return slices.ContainsFunc(s.public, holds) || slices.ContainsFunc(shown, holds)
	}))
}

// passwords returns the spans in which a text has the password after its user, or the
// password's beginning. They are whole words: "u:p" isn't in "menu:port".
func (l login) passwords(text string) (spans []span) {
	for _, at := range find(text, l.user+l.password, l.user+l.password[:1]) {
		before, _ := utf8.DecodeLastRuneInString(text[:at.from])
		after, _ := utf8.DecodeRuneInString(text[at.to:])
		if !inWord(before) && !inWord(after) {
			at.from += len(l.user)
			spans = append(spans, at)
		}
	}
	return spans
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// find returns the spans in which a text has a secret, or a part of it that begins with its
// head.
func find(text, secret, head string) (spans []span) {
	for from := 0; ; from++ {
		i := strings.Index(text[from:], head)
		if i < 0 {
			return spans
		}
		from += i
		to := from + len(head)
		for to < len(text) && to-from < len(secret) && text[to] == secret[to-from] {
			to++
		}
		spans = append(spans, span{from, to, Mask, text[from:to]})
	}
}

// cut replaces the spans. Of spans that overlap, the first says by what.
func cut(text string, spans []span) string {
	slices.SortStableFunc(spans, func(a, b span) int { return a.from - b.from })
	var shown strings.Builder
	done := 0
	for i := 0; i < len(spans); {
		hidden := spans[i]
		for i++; i < len(spans) && spans[i].from < hidden.to; i++ {
			hidden.to = max(hidden.to, spans[i].to)
		}
		shown.WriteString(text[done:hidden.from] + hidden.mask)
		done = hidden.to
	}
	return shown.String() + text[done:]
}
