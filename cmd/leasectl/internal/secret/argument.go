package secret

import (
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// word matches an argument that is shown whole: a name, a path or an option without a value. It
// is short, because a key isn't.
var word = regexp.MustCompile(`^[\p{L}\p{N}_./-]+$`)

// beginning matches what is shown of other arguments: a scheme, or the name of a variable or an
// option. A key may end with one or two equals signs.
var beginning = regexp.MustCompile(`^(-{0,2}[A-Za-z][A-Za-z_+-]{0,39}(?:=|://?|//))[^=]`)

// Shown is an argument that wasn't understood, up to what may be a secret in it: of a store's URI
// that isn't well-formed, nothing shows where the password is.
func Shown(argument string) string {
	if utf8.RuneCountInString(argument) <= 40 && word.MatchString(argument) {
		return argument
	}
	shown := "…"
	if m := beginning.FindStringSubmatch(argument); m != nil {
		shown = m[1] + shown
	}
	return shown
}

// InFlags is an error of parsing options, with what is Shown of them.
func InFlags(err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if letters := e.GetSpecifiedShortnames(); letters != "" {
			return fmt.Errorf("unknown shorthand flag: %.1q in %s", e.GetSpecifiedName(), Shown("-"+letters))
		}
		if e.GetSpecifiedName() == "join-mid-slot" { // Scripts of before may have it.
			return errors.New("there is no --join-mid-slot any more: workers join the slot in which they start by themselves, unless --wait-for-boundary says otherwise")
		}
		return fmt.Errorf("unknown flag: %s", Shown("--"+e.GetSpecifiedName()))
	}
	if e, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return fmt.Errorf("bad flag syntax: %s", Shown(e.GetSpecifiedFlag()))
	}
	return err
}
