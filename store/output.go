package store

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"io"
	"strings"
	"unicode/utf8"
)

// cut stands for the lines that were left out in front of an output.
const cut = "…\n"

// packed is as much of the end of a text as fits into so many bytes, compressed. It is empty if that is next to nothing.
func packed(text string, most int) string {
	const least = 64
	if most < least {
		return ""
	}
	for {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestCompression)
		if err != nil {
			return ""
		}
		_, _ = io.WriteString(w, text) // A buffer takes everything.
		_ = w.Close()
		size := base64.StdEncoding.EncodedLen(b.Len())
		if size <= most {
			return base64.StdEncoding.EncodeToString(b.Bytes())
		}
		keep := len(text) * most / size * 9 / 10
		if keep < least {
			return ""
		}
		text = shortenedFront(text, keep)
	}
}

// unpacked is the text that packed has made, or empty.
func unpacked(text string) string {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 {
		return ""
	}
	b, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), MaxOutput)) // Any program may have written it.
	if err != nil {
		return ""
	}
	return shortened(string(b), MaxOutput)
}

// shortenedFront is the end of a text, of at most most bytes with what stands for the rest: whole lines, if there is more than
// one, whole runes of UTF-8, and no NUL.
func shortenedFront(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= most {
		return text
	}
	from := len(text) - max(most-len(cut), 1)
	if at := strings.IndexByte(text[from-1:], '\n'); at >= 0 && from+at < len(text) {
		return cut + text[from+at:]
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return cut + text[from:]
}
