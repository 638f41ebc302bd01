package storekit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/benbjohnson/clock"
)

// Renewed is what a ledger makes of files, such as certificates, that others may renew while it is open. They are read again for each
// new connection.
type Renewed[T any] struct {
	read  func() (T, error)
	files []string

	mu    sync.Mutex
	last  T
	stale error // why last is of before, or nil
}

// NewRenewed reads files for the first time. Names that are empty don't count.
func NewRenewed[T any](read func() (T, error), files ...string) (*Renewed[T], error) {
	r := &Renewed[T]{read: read, files: slices.DeleteFunc(files, func(path string) bool { return path == "" })}
	var err error
	r.last, err = read()
	return r, err
}

// RenewedURI is what parse makes of a URI that a file has in one line; nil without a file. What the file has now is uri. Only the login
// may change in it: that of another store is none of this one's.
func RenewedURI[T any](path, uri string, parse func(uri string) (T, error)) (*Renewed[T], error) {
	if path == "" {
		return nil, nil //nolint:nilnil // A nil Renewed adds nothing.
	}
	last, err := parse(uri)
	return &Renewed[T]{files: []string{path}, last: last, read: func() (none T, _ error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return none, err
		}
		again := strings.TrimRight(string(text), "\r\n")
		if placeOf(again) != placeOf(uri) {
			return none, errors.New("it names another store than at the start: start the program again to use that")
		}
		return parse(again)
	}}, err
}

// placeOf is a URI without its login.
func placeOf(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	end := strings.IndexAny(rest+"/", "/?#")
	return scheme + "://" + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}

// Now reads the files again. While one is missing or half written, what they were last is used. So it is for good if one is a pipe,
// which is read once.
func (r *Renewed[T]) Now() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.files, isPipe) {
		return r.last
	}
	fresh, err := r.read()
	if r.stale = err; err == nil {
		r.last = fresh
	}
	return r.last
}

func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// Explain adds to the error of a new connection, if there is one, that it was made with what the files were before. A nil Renewed adds
// nothing.
func (r *Renewed[T]) Explain(err error) error {
	if r == nil || err == nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stale == nil {
		return err
	}
	return fmt.Errorf("%w (%s can't be read now, and what was read before is used: %s)", err, cmp.Or(strings.Join(r.files, ", "), "the files"), r.stale.Error())
}

// File is one that a parameter or a variable names, or none if Path is empty.
type File struct{ Name, Path string }

// RenewedTLS is base with the authorities that a file has, in place of the system's, and the client's certificate and key. That one of
// these two is missing is for its caller to refuse, without a look at the other.
func RenewedTLS(base *tls.Config, ca, cert, key File) (*Renewed[*tls.Config], error) {
	return NewRenewed(func() (*tls.Config, error) {
		c := base.Clone()
		var errs []error
		if ca.Path != "" {
			var err error
			if c.RootCAs, err = Authorities(ca.Path); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", ca.Name, err))
			}
		}
		if cert.Path != "" && key.Path != "" {
			pair, err := tls.LoadX509KeyPair(cert.Path, key.Path)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s and %s: %w", cert.Name, key.Name, err))
			}
			c.Certificates = []tls.Certificate{pair}
		}
		return c, errors.Join(errs...)
	}, ca.Path, cert.Path, key.Path)
}

// Authorities reads those of a file, which must be whole.
func Authorities(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("the file has no certificate in PEM")
	}
	rest := text
	for block := (&pem.Block{}); block != nil; {
		block, rest = pem.Decode(rest)
	}
	last, begin := rest[bytes.LastIndexByte(rest, '\n')+1:], []byte("-----BEGIN ")
	if bytes.Contains(rest, begin) || len(last) > 0 && bytes.HasPrefix(begin, last) {
		return nil, errors.New("the last certificate in the file isn't whole")
	}
	return pool, nil
}

// CheckAuthorities says what is wrong with a file of authorities for a driver that would take half of it for the whole. One that isn't
// there, or is a pipe, is the driver's to read.
func CheckAuthorities(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	_, err = Authorities(path)
	return err
}

// RenewTLS has each new connection be encrypted as secure says by then. What goes through a proxy is encrypted as it says now, since
// http.Transport makes that connection itself.
func RenewTLS(t *http.Transport, secure *Renewed[*tls.Config], c clock.Clock) {
	t.TLSClientConfig = secure.Now().Clone()
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := t.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		config := secure.Now().Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(addr)
		}
		if len(config.NextProtos) == 0 {
			config.NextProtos = []string{"h2", "http/1.1"}
		}
		ctx, cancel := c.WithTimeout(ctx, t.TLSHandshakeTimeout) // The request's time doesn't bound what a transport dials.
		defer cancel()
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, secure.Explain(err)
		}
		return secured, nil
	}
}
