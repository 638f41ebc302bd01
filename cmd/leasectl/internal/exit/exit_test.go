package exit

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"
)

func TestJoinShowsAllProblemsWithTheFirstCode(t *testing.T) {
	missing, refused := With(Missing, fs.ErrNotExist), With(Refused, fs.ErrInvalid)
	missing.Try, refused.Try = "put it back", "choose another"
	for name, c := range map[string]struct {
		errs     []error
		code     int
		try      string
		problems []error
	}{
		"an error with a code first": {[]error{missing, io.EOF, refused}, Missing, "put it back", []error{fs.ErrNotExist, io.EOF, fs.ErrInvalid}},
		"an error without one first": {[]error{nil, io.EOF, refused}, Refused, "choose another", []error{io.EOF, fs.ErrInvalid}},
		"none with a code":           {[]error{io.EOF, nil}, Failure, "", []error{io.EOF}},
	} {
		e, ok := errors.AsType[*Error](Join(c.errs...))
		if !ok || e.Code != c.code || e.Try != c.try || !slices.Equal(e.Problems, c.problems) {
			t.Errorf("%s: Join() = %+v, want code %d, to try %q, and %v", name, e, c.code, c.try, c.problems)
		}
	}
	if err := Join(nil, nil); err != nil {
		t.Errorf("Join() of no errors = %v, want nil", err)
	}
}
