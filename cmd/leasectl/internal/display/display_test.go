package display

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// hostile are characters that must never reach a terminal, by what they are.
var hostile = map[string]string{
	"C0":                       "\x00\x01\a\b\v\f\r\x1b\x1f",
	"DEL":                      "\x7f",
	"C1":                       "\u0080\u0085\u0090\u009b\u009d\u009f",
	"bidirectional":            "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
	"zero-width":               "\u00ad\u034f\u200b\u200c\u200d\u2060\u2064\ufeff\u180b\ufe0f\U000e0100",
	"separators":               "\u2028\u2029",
	"spaces":                   "\u00a0\u2000\u3000",
	"fillers":                  "\u115f\u1160\u3164\uffa0\u17b4\u17b5\U00016fe4",
	"blanks that are symbols":  "\u2800\U0001d159\U00013441\U00013442",
	"tags":                     "\U000e0001\U000e0041\U000e007f",
	"private":                  "\ue000\U000f0000",
	"invalid UTF-8":            "\xff\xc0\x80\x9b",
	"lone surrogates as bytes": "\xed\xa0\x80\xed\xbf\xbf",
	"a title":                  "\x1b]0;owned\a\u009d0;owned\u009c",
	"a hyperlink":              "\x1b]8;;http://h\x1b\\text\x1b]8;;\x1b\\",
}

// wantShowable demands a text that a terminal shows as it is read, on one line.
func wantShowable(t *testing.T, what, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.IndexFunc(s, func(r rune) bool { return Hidden(r) || !unicode.IsPrint(r) }) >= 0 {
		t.Errorf("%s = %q, want what can be shown on one line", what, s)
	}
}

func TestNothingHostileIsShown(t *testing.T) {
	for name, s := range hostile {
		for _, text := range []string{s, "a" + s + "z", strings.Repeat(s, 3)} {
			wantShowable(t, name+": Flat()", Flat(text))
			wantShowable(t, name+": Line()", Line(text))
			wantShowable(t, name+": Text()", Text(text))
			wantShowable(t, name+": Quote()", Quote(text))
			wantShowable(t, name+": EscapeJSON()", string(EscapeJSON([]byte(text))))
			for _, terminal := range []bool{false, true} {
				var b bytes.Buffer
				if n, err := (Writer{&b, terminal}).Write([]byte(text)); n != len(text) || err != nil {
					t.Errorf("%s: Write() = %d, %v, want all written", name, n, err)
				}
				wantShowable(t, name+": a Writer", b.String())
			}
			if word, ok := Word(text); ok {
				wantShowable(t, name+": Word()", word)
			}
		}
	}
}

func TestEachHostileCharacterIsHidden(t *testing.T) {
	for name, s := range hostile {
		if strings.HasPrefix(name, "a ") || !utf8.ValidString(s) {
			continue // They have ordinary characters, too, or none.
		}
		for _, r := range s {
			if !Hidden(r) {
				t.Errorf("%s: Hidden(%U) = false, want true", name, r)
			}
		}
	}
	for r := rune(0); r < 0xa0; r++ {
		if want := r < ' ' || r >= 0x7f; Hidden(r) != want {
			t.Errorf("Hidden(%U) = %v, want %v", r, Hidden(r), want)
		}
	}
}

func TestWhatIsMeantToBeReadStays(t *testing.T) {
	const text = "Zürich 工人 عامل работник 🦫 é e\u0301 ✓ · ± … 'a' \"b\" \\"
	for name, got := range map[string]string{"Text": Text(text), "Flat": Flat(text), "Line": Line(text)} {
		if got != text {
			t.Errorf("%s() = %q, want %q", name, got, text)
		}
	}
	if got := Text("a\n\tb\n"); got != "a\n\ufffdb\n" {
		t.Errorf("Text() = %q, want the lines", got)
	}
	if got := Line(" a\n\tb \u2028c\n"); got != "a b c" {
		t.Errorf("Line() = %q, want one line", got)
	}
	if got := Quote("a\u202e\"\U000e0041\xff\n" + "é"); got != `"a\u202e\"\U000e0041\xff\n`+`é"` {
		t.Errorf("Quote() = %s", got)
	}
}

func TestAWriterKnowsItsOwnOrders(t *testing.T) {
	const text = "\x1b[2J\x1b[H\x1b[31mred\x1b[0m\x1b[K\n\tx\x1b[J\x1b[6n\x1b[?25l\x1b[38;5;1m"
	for terminal, want := range map[bool]string{
		true:  "\x1b[2J\x1b[H\x1b[31mred\x1b[0m\x1b[K\n\tx\x1b[J\ufffd[6n\ufffd[?25l\ufffd[38;5;1m",
		false: "\ufffd[2J\ufffd[H\ufffd[31mred\ufffd[0m\ufffd[K\n\tx\ufffd[J\ufffd[6n\ufffd[?25l\ufffd[38;5;1m",
	} {
		var b bytes.Buffer
		if _, err := (Writer{&b, terminal}).Write([]byte(text)); err != nil || b.String() != want {
			t.Errorf("a Writer to a terminal (%v) writes %q, %v, want %q", terminal, b.String(), err, want)
		}
	}
}

func TestJSONLosesNothing(t *testing.T) {
	for name, s := range hostile {
		s = strings.ToValidUTF8(s, "\ufffd") // JSON has no form for anything else.
		for _, v := range []any{s, map[string]any{s: []any{s, 1.5, nil}}} {
			var b bytes.Buffer
			encoder := json.NewEncoder(JSONWriter{&b})
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "\t")
			if err := encoder.Encode(v); err != nil {
				t.Fatal(err)
			}
			wantShowable(t, name+": JSON", strings.Map(func(r rune) rune {
				if r == '\n' || r == '\t' {
					return ' '
				}
				return r
			}, b.String()))
			want, _ := json.Marshal(v)
			var got any
			if err := json.Unmarshal(b.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v", b.String(), err)
			}
			if again, _ := json.Marshal(got); !bytes.Equal(again, want) {
				t.Errorf("%s: %s comes back as %s, want %s", name, b.String(), again, want)
			}
		}
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "a\u0301\u0302\u0303": 1, "工人": 4, "ｊob": 4, "🦫": 2, "한": 2, "\u1112\u1161\u11ab": 2, "·±…": 3, "\ufffd": 1, "عامل": 4,
	} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"工人", 4, "工人"},
		{"工人们", 4, "工…"},
		{"工人们", 5, "工人…"},
		{"", 3, ""},
		{"a" + strings.Repeat("\u0301", 99), 4, "a" + strings.Repeat("\u0301", 6) + "…"},
		{"ab\u0301", 2, "ab\u0301"},
	} {
		if got := Clip(c.s, c.most); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestTimesAndDurationsForPeople(t *testing.T) {
	now := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]string{
		0: "12:00:00.000Z", 23 * time.Hour: "11:00:00.000Z", -23 * time.Hour: "13:00:00.000Z",
		24 * time.Hour: "2026-03-03T12:00:00.000Z", -24 * time.Hour: "2026-03-01T12:00:00.000Z",
	} {
		if got := When(now.Add(after), now); got != want {
			t.Errorf("When(%v later) = %s, want %s", after, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0ms", 1500 * time.Microsecond: "2ms", 1500 * time.Millisecond: "1.5s", 2 * time.Second: "2s", time.Minute: "1m",
		97 * time.Minute: "1h37m", 2 * time.Hour: "2h", 3661*time.Second + 400*time.Millisecond: "1h1m1s",
	} {
		if got := Brief(d); got != want {
			t.Errorf("Brief(%d) = %s, want %s", d, got, want)
		}
	}
}
