package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/internal/scrub"
)

// Target is a URL, or a command line for sh.
type Target struct{ text string }

// placeholder is a part of a URL in place of which a fact stands.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// Parse reads a target: a URL if it begins with http:// or https://, @FILE for a file with one, and else a command line.
// An error shows nothing of a URL or a file but names of placeholders: they may hold a secret. The end of ctx ends the
// wait for a file that is a pipe.
func Parse(ctx context.Context, text string) (Target, error) {
	if file, ok := strings.CutPrefix(text, "@"); ok {
		content, err := secret.ReadFile(ctx, file, "one URL or command line")
		if err != nil {
			return Target{}, fmt.Errorf("%q: %w", file, err)
		}
		text = content
	}
	t := Target{text}
	switch {
	case strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0):
		return Target{}, errors.New("must be a URL, a command line or @FILE")
	case !t.isURL():
		return t, nil
	}
	known := placeholders(Facts{})
	for _, p := range placeholder.FindAllString(text, -1) {
		if _, ok := known[p]; !ok {
			return Target{}, fmt.Errorf("its URL has %s: the placeholders are %s", p, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	if _, err := t.address(Facts{}); err != nil {
		return Target{}, errors.New("its URL is malformed: it must be like https://host/path, with what is special as %XX")
	}
	return t, nil
}

func (t Target) isURL() bool {
	return strings.HasPrefix(t.text, "http://") || strings.HasPrefix(t.text, "https://")
}

// placeholders are what facts put in place of parts of a URL.
func placeholders(f Facts) map[string]string {
	escaped := map[string]string{}
	for name, text := range f.values() {
		escaped["{"+name+"}"] = strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	}
	delete(escaped, "{text}") // A URL takes no text of any length.
	delete(escaped, "{output}")
	return escaped
}

// address is the URL with the facts in it.
func (t Target) address(f Facts) (*url.URL, error) {
	facts := placeholders(f)
	u, err := url.Parse(placeholder.ReplaceAllStringFunc(t.text, func(p string) string { return facts[p] }))
	if err == nil && u.Hostname() == "" {
		err = errors.New("no host")
	}
	return u, err
}

// Shown is the target without what may be secret: the host of a URL, or the first word of a command.
func (t Target) Shown() string {
	if !t.isURL() {
		words := strings.Fields(t.text)
		return secret.Shown(words[0])
	}
	u, err := t.address(Facts{})
	if err != nil {
		return "https://…"
	}
	return u.Scheme + "://" + u.Host + "/…"
}

// Secrets are the parts of it that are never shown.
func (t Target) Secrets() []string {
	u, err := t.address(Facts{})
	if !t.isURL() || err != nil {
		return nil
	}
	return append(secretsOf(u), t.text)
}

func secretsOf(u *url.URL) []string {
	password, _ := u.User.Password()
	return []string{u.String(), u.User.Username(), password, u.RawQuery, strings.TrimPrefix(u.EscapedPath(), "/")}
}

// withoutSecrets is an error of a POST without its URL and the parts of it: a server may answer with what it was asked.
func (t Target) withoutSecrets(err error, to *url.URL) error {
	var s scrub.Secrets
	for _, hidden := range append(t.Secrets(), secretsOf(to)...) {
		s.Hide(hidden)
	}
	return errors.New(s.Scrub(err.Error()))
}

// tell runs the command, or sends the POST. final says that another try can't help.
func (t Target) tell(ctx context.Context, f Facts, o Options) (final bool, err error) {
	f = f.complete()
	if t.isURL() {
		return t.post(ctx, f)
	}
	return false, t.run(ctx, f.environ(o.Env), o.Stderr)
}

// client follows no redirect: the body is for one place alone.
var client = &http.Client{
	Timeout:       tryTime,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (t Target) post(ctx context.Context, f Facts) (final bool, err error) {
	to, err := t.address(f)
	if err != nil {
		return true, errors.New("its URL is malformed with these facts")
	}
	body, err := f.body()
	if err != nil {
		return true, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return true, errors.New("its URL is malformed with these facts")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "leasectl")
	answer, err := client.Do(r)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // The rest is the URL.
	}
	if err != nil {
		return false, t.withoutSecrets(err, to)
	}
	const drained = 64 << 10 // The connection may be used again.
	_, _ = io.CopyN(io.Discard, answer.Body, drained)
	_ = answer.Body.Close()
	code := answer.StatusCode
	switch {
	case code < 300:
		return true, nil
	case code < 400:
		return true, fmt.Errorf("answered %d %s: name the address to which it redirects", code, http.StatusText(code))
	}
	again := code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
	return !again, fmt.Errorf("answered %d %s", code, http.StatusText(code))
}

// run runs the command under a guard, so that nothing of it outlives its time. Other ways to start a process would not
// do: what is no guard's may be taken for an orphan of one, see [guard.BecomeSubreaper].
func (t Target) run(ctx context.Context, env []string, stderr *os.File) error {
	p, err := guard.Start(guard.Command{
		Path: "sh", Args: []string{"-c", t.text}, Env: env, Stdout: stderr, Stderr: stderr,
		Deadline: guard.Boottime() + commandTime, Grace: commandGrace,
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = p.Kill() })()
	status, err := p.Wait()
	switch {
	case err != nil:
		return err
	case status.ExitCode() != 0 || status.Reason != guard.Exited:
		return errors.New(status.String())
	}
	return nil
}
