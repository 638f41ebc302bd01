package display

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// spoken is what a shell passes to a command for a word.
func spoken(t *testing.T, shell, word string) string {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skipf("there is no %s here", shell)
	}
	out, err := exec.CommandContext(t.Context(), shell, "-c", "printf '%s|' "+word).CombinedOutput() //nolint:gosec // That the word is harmless is what is tested.
	if err != nil {
		t.Fatalf("%s -c of the word %s: %v, %s", shell, word, err, out)
	}
	return string(out)
}

var words = []string{
	"", "a", "a b", "it's", `"`, `\`, "$HOME", "$(touch x)", "`touch x`", "a;b", "a|b", "a&b", "a>b", "~", "~root", "{a,b}", "*", "?", "[a]", "!1", "#", "=ls", "%1", "-", "--", "-n", "--yes",
	"a\nb", "\na", "a\n", "\n", "a\rb", "\ttab", "a\x1b[2J", "a\u202eb", "it's\n!1 $x `y` \\ \" %s", "-n\x01", "é\n", "\x80é\x9b1", "\x00", "a\x00b", "sqlite:my leases.db", "mongodb://h/d?collection=c&w=majority", "工人", "\x013", "%s\x01",
}

func TestAWordReachesTheCommandAsItWas(t *testing.T) {
	for _, s := range words {
		word, ok := Word(s)
		if impossible := strings.ContainsRune(s, 0) || strings.HasSuffix(s, "\n"); ok == impossible {
			t.Errorf("Word(%q) = %s, %v", s, word, ok)
		}
		if !ok {
			continue
		}
		wantShowable(t, "Word()", word)
		if got := unquoted(t, word); got != s {
			t.Errorf("Word(%q) = %s, which is %q", s, word, got)
		}
		for _, shell := range []string{"sh", "bash", "zsh"} {
			t.Run(shell+" "+word, func(t *testing.T) {
				if got := spoken(t, shell, word); got != s+"|" {
					t.Errorf("Word(%q) = %s, which %s passes as %q", s, word, shell, got)
				}
			})
		}
	}
	for _, s := range []string{"sqlite:leases.db", "invoice-export", "a.b_c"} {
		if word, _ := Word(s); word != s {
			t.Errorf("Word(%q) = %s, want no quotes", s, word)
		}
	}
}

// FuzzShown shows an arbitrary text in every way, and has a shell read it.
func FuzzShown(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	for _, s := range words {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, shown := range map[string]string{"Flat": Flat(s), "Line": Line(s), "Quote": Quote(s), "EscapeJSON": strings.NewReplacer("\n", "", "\t", "").Replace(string(EscapeJSON([]byte(s))))} {
			wantShowable(t, name, shown)
		}
		for _, line := range strings.Split(Text(s), "\n") {
			wantShowable(t, "a line of Text", line)
		}
		if again := Flat(Flat(s)); again != Flat(s) {
			t.Errorf("Flat() of itself is %q, want %q", again, Flat(s))
		}
		if n := Width(Clip(Flat(s), 20)); n > 20 || utf8.RuneCountInString(Clip(Flat(s), 20)) > 40 {
			t.Errorf("Clip(%q) takes %d columns", Flat(s), n)
		}
		var b bytes.Buffer
		if n, err := (Writer{To: &b}).Write([]byte(s)); n != len(s) || err != nil || strings.Contains(b.String(), "\x1b") {
			t.Errorf("a Writer writes %q, %d, %v of %q", b.String(), n, err, s)
		}
		encoded, _ := json.Marshal(s)
		var got string
		if err := json.Unmarshal(EscapeJSON(encoded), &got); err != nil || got != strings.ToValidUTF8(got, "") || utf8.ValidString(s) && got != s {
			t.Errorf("EscapeJSON(%s) = %s, which is %q, %v", encoded, EscapeJSON(encoded), got, err)
		}
		word, ok := Word(s)
		if !ok {
			return
		}
		wantShowable(t, "Word", word)
		if got := unquoted(t, word); got != s {
			t.Errorf("Word(%q) = %s, which is %q", s, word, got)
		}
		if len(s) < 1<<10 && crc32.ChecksumIEEE([]byte(s))%128 == 0 {
			if got := spoken(t, "sh", word); got != s+"|" {
				t.Errorf("Word(%q) = %s, which the shell passes as %q", s, word, got)
			}
		}
	})
}

var octets = regexp.MustCompile(`\\[0-3][0-7][0-7]`)

// unquoted is what a word is by the rules of the shell, as far as words are made of them. It
// is faster than a shell.
func unquoted(t *testing.T, word string) string {
	t.Helper()
	octal := false
	if format, ok := strings.CutPrefix(word, `"$(printf `); ok {
		word, octal = strings.TrimSuffix(format, `)"`), true
	}
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == '\'':
			end := strings.IndexByte(word[i+1:], '\'')
			if end < 0 {
				t.Fatalf("the word %s has a quote that doesn't end", word)
			}
			b.WriteString(word[i+1 : i+1+end])
			i += end + 1
		case c == '\\':
			i++
			b.WriteByte(word[i])
		case strings.IndexByte(plain, c) < 0:
			t.Fatalf("the word %s has %q without quotes", word, c)
		default:
			b.WriteByte(c)
		}
	}
	if !octal {
		return b.String()
	}
	return octets.ReplaceAllStringFunc(b.String(), func(o string) string {
		n, _ := strconv.ParseUint(o[1:], 8, 8)
		return string([]byte{byte(n)})
	})
}
