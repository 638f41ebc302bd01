package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/store"
)

func TestOneLineIsShortAndUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		" a\r\n\tb\v c ":               "a b c",
		"a\xffb":                       "a\uFFFDb",
		strings.Repeat("x", 600):       strings.Repeat("x", 600),
		strings.Repeat("x", 601):       strings.Repeat("x", 600) + "…",
		strings.Repeat("x", 599) + "é": strings.Repeat("x", 599) + "…",
	} {
		if got := OneLine(in); got != want || !utf8.ValidString(got) {
			t.Errorf("OneLine(%.20q) = %q, want %q", in, got, want)
		}
	}
}

func TestAShownErrorHasItsCausesAndMeaning(t *testing.T) {
	e := Show("driver:\nio", io.EOF)
	e.Name(context.Canceled)
	e.Name(context.Canceled)
	if got, want := e.Error(), "context canceled: driver: io"; got != want || !errors.Is(e, io.EOF) || !errors.Is(e, context.Canceled) {
		t.Errorf("an error = %q, want %q and both causes", got, want)
	}
	err := Show("code 11000", io.EOF).Meaning(store.ErrConflict, time.Second)
	if got, want := err.Error(), store.ErrConflict.Error()+": code 11000"; got != want || !errors.Is(err, store.ErrConflict) || !errors.Is(err, io.EOF) {
		t.Errorf("a conflict = %q, want %q", got, want)
	}
	if got := Show("what it is", store.ErrRefused).Meaning(store.ErrRefused, 0).Error(); got != "what it is" {
		t.Errorf("an error that has the sentinel already = %q, want it unchanged", got)
	}
	if got := Show("unknown", io.EOF).Meaning(nil, time.Second).Error(); got != "unknown" {
		t.Errorf("an error without a meaning = %q, want it unchanged", got)
	}
	throttled, ok := errors.AsType[*store.ThrottledError](Show("429", io.EOF).Meaning(store.ErrThrottled, time.Second))
	if !ok || throttled.RetryAfter != time.Second || !errors.Is(throttled, io.EOF) {
		t.Errorf("a throttled request = %+v, want a ThrottledError with 1s", throttled)
	}
}

func TestADetailIsToldApartFromTheText(t *testing.T) {
	e := Show("no primary", io.EOF)
	if got := store.Detail(e); got != "no primary" {
		t.Errorf("Detail() = %q, want the text", got)
	}
	e.Explain("server selection:\n topology")
	e.Mean(store.ErrNotStored)
	if got, want := store.Detail(fmt.Errorf("append: %w", e)), "server selection: topology"; got != want || e.Error() != "no primary" || !errors.Is(e, store.ErrNotStored) {
		t.Errorf("Detail() of %q = %q, want %q, and the cause without its text", e, got, want)
	}
	if got := store.Detail(io.EOF); got != "EOF" {
		t.Errorf("Detail() of another error = %q, want its text", got)
	}
	if got := store.Detail(nil); got != "" {
		t.Errorf("Detail() of no error = %q, want nothing", got)
	}
}

type typed struct{ error }

func TestAHiddenCancellationIsFoundByItsTypeOnly(t *testing.T) {
	e := Show("canceled", typed{context.Canceled}, context.Canceled)
	e.HideCancellation()
	e.Name(store.ErrClosed)
	if errors.Is(e, context.Canceled) || !errors.Is(e, store.ErrClosed) {
		t.Errorf("errors.Is finds %v in %v", context.Canceled, e)
	}
	if _, ok := errors.AsType[typed](e); !ok {
		t.Errorf("errors.As doesn't find the type of a cause in %v", e)
	}
}

func TestAContextEndsWithItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := Ended(ctx); err != nil {
		t.Errorf("Ended() of a context that goes on = %v, want nil", err)
	}
	cancel(io.EOF)
	if err := Ended(ctx); fmt.Sprint(err) != "context canceled: EOF" || !errors.Is(err, context.Canceled) || !errors.Is(err, io.EOF) {
		t.Errorf("Ended() = %v, want the context's error and its cause", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Ended(ctx); !errors.Is(err, context.Canceled) || fmt.Sprint(err) != "context canceled" {
		t.Errorf("Ended() without a cause = %v, want context.Canceled alone", err)
	}
}

// wavering has ended between two looks at it.
type wavering struct {
	context.Context
	looks int
}

func (w *wavering) Err() error {
	if w.looks++; w.looks == 1 {
		return nil
	}
	return context.Canceled
}

func TestAContextThatEndsMeanwhileGivesNoHalfAnError(t *testing.T) {
	if err := Ended(&wavering{Context: t.Context()}); err != nil {
		t.Errorf("Ended() of a context that had not ended at the first look = %v, want nil", err)
	}
}

func TestOfNamesStoreOperationAndKey(t *testing.T) {
	for want, err := range map[string]error{
		"<nil>":                 Of("mongo", "get", "job:1", nil),
		"mongo: get job:1: EOF": Of("mongo", "get", "job:1", io.EOF),
		"mongo: now: EOF":       Of("mongo", "now", "", io.EOF),
	} {
		if got := fmt.Sprint(err); got != want {
			t.Errorf("Of() = %q, want %q", got, want)
		}
	}
}

// A driver's words may have the whole body of a reply, such as some proxy's page.
func TestADetailIsBounded(t *testing.T) {
	e := Show("the service is down")
	e.Explain("503: " + strings.Repeat("é ", 1<<20))
	if got := e.Detail(); len(got) > MaxDetail+len("…") || !strings.HasPrefix(got, "503: é é") || !strings.HasSuffix(got, "…") || !utf8.ValidString(got) {
		t.Errorf("the detail of an error of 3 MiB = %.20q… of %d bytes, want its beginning, at most %d bytes and an ellipsis", got, len(got), MaxDetail)
	}
}
