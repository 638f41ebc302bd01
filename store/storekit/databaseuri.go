package storekit

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

var (
	serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})$`) })
	optionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_]{1,24}$`) })
)

// URIForm is the form of the URIs of one kind of database:
//
//	SCHEME://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE&NAME=VALUE
type URIForm struct {
	// Schemes are what a URI may begin with. Messages show a URI with the first.
	Schemes []string
	// Port is the port of a host without one.
	Port string
	// Socket is, for messages, the parameter that names a Unix socket in place of hosts, such as "socket=/PATH".
	Socket string
	// Folder reports whether the name of a host is the folder of a Unix socket, which begins with a slash. Optional:
	// without it, no host is one.
	Folder func(host string) bool
	// Reserved are characters that the name of no database has, beside the slash.
	Reserved string
	// MostName bounds the name of a database, in bytes. Default: no bound.
	MostName int
}

// DatabaseURI is where a database is, and who logs in, as a URI says it.
type DatabaseURI struct {
	User, Password string
	// Hosts have a name, an IP address or the folder of a Unix socket each, and Ports as many ports.
	Hosts, Ports []string
	// Socket is the path of a Unix socket in place of hosts. The URI names it in a parameter.
	Socket   string
	Database string
}

// Read takes a URI apart. set is called with each parameter, percent-decoded and not empty, and says what is wrong
// with it, such as "must be true or false" or "is unknown: use table or tls"; it may add a host or a socket if u
// has none. The errors, one for each fault, quote no part of the URI but the names of parameters that look like names:
// anything else may be half a password.
func (u *DatabaseURI) Read(uri string, form URIForm, set func(name, value string) error) (errs []error) {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || !slices.Contains(form.Schemes, scheme) {
		return []error{errors.New("uri: must begin with " + strings.Join(form.Schemes, ":// or ") + "://")}
	}
	bad := func(text string) { errs = append(errs, errors.New("uri: "+text)) }
	rest, query, _ := strings.Cut(rest, "?")
	authority, database, _ := strings.Cut(rest, "/")
	spilled := strings.Contains(uri, "#") || strings.Contains(database+query, "@")
	if spilled {
		// Perhaps the rest of a password, of which even what looks like a parameter's name may be a part.
		bad("the characters / ? # @ and % must be percent-encoded in a user, a password and a parameter")
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		u.login(authority[:at], bad)
		authority = authority[at+1:]
	}
	if !u.locate(authority, form) {
		folder := " or an IP address (IPv6 in brackets),"
		if form.Folder != nil {
			folder = ", an IP address (IPv6 in brackets) or the percent-encoded folder of a Unix socket,"
		}
		bad("each host must be a name" + folder + " with a port from 1 to 65535 or none")
	}
	u.name(database, form, bad)
	if !spilled {
		errs = append(errs, eachParameter(query, optionName(), func(name, raw string, has bool) error {
			value, fine := decoded(raw)
			if !has || !fine || value == "" {
				return errors.New("has no value, or one that is not percent-encoded correctly")
			}
			return set(name, value)
		})...)
	}
	if len(errs) == 0 && len(u.Hosts) == 0 && u.Socket == "" {
		bad("the host is missing: " + form.Schemes[0] + "://HOST/DATABASE, or " + form.Socket + " for a Unix socket")
	}
	return errs
}

// decoded is a percent-decoded text.
func decoded(text string) (string, bool) {
	plain, err := url.PathUnescape(text)
	return plain, err == nil && !strings.ContainsRune(plain, 0)
}

// login reads the user and the password.
func (u *DatabaseURI) login(info string, bad func(string)) {
	user, password, has := strings.Cut(info, ":")
	var ok, fine bool
	u.User, ok = decoded(user)
	u.Password, fine = decoded(password)
	switch {
	case !ok || !fine || strings.ContainsAny(info, "@[]"):
		bad("user or password is not percent-encoded correctly")
	case u.User == "" || has && u.Password == "":
		bad("user or password is empty before the @")
	}
}

// locate reads the hosts, and reports whether they are well formed.
func (u *DatabaseURI) locate(authority string, form URIForm) bool {
	if authority == "" {
		return true
	}
	for one := range strings.SplitSeq(authority, ",") {
		host, port := one, form.Port
		if i := strings.LastIndexByte(one, ':'); i >= 0 && !strings.HasSuffix(one, "]") {
			host, port = one[:i], one[i+1:]
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n < 1 || port[0] == '+' {
			return false
		}
		bare, isIPv6 := strings.CutPrefix(host, "[")
		switch {
		case isIPv6:
			bare, isIPv6 = strings.CutSuffix(bare, "]")
			if ip := net.ParseIP(bare); !isIPv6 || ip == nil || !strings.Contains(bare, ":") {
				return false
			}
		case serverName().MatchString(host):
		case form.Folder == nil:
			return false
		default:
			var ok bool
			if bare, ok = decoded(host); !ok || !serverName().MatchString(bare) && !form.Folder(bare) {
				return false
			}
		}
		u.Hosts, u.Ports = append(u.Hosts, bare), append(u.Ports, port)
	}
	return true
}

// name reads the name of the database.
func (u *DatabaseURI) name(text string, form URIForm, bad func(string)) {
	var ok bool
	u.Database, ok = decoded(strings.TrimSuffix(text, "/"))
	switch {
	case !ok || form.MostName > 0 && len(u.Database) > form.MostName || strings.ContainsAny(u.Database, "/"+form.Reserved):
		reserved := ""
		if form.Reserved != "" {
			reserved = " has one of " + strings.Join(strings.Split("/"+form.Reserved, ""), " ") + ","
		}
		bad("the database is not percent-encoded correctly," + reserved + " or there is more than one")
	case u.Database == "":
		bad("the database is missing: " + form.Schemes[0] + "://HOST/DATABASE")
	case strings.Contains(u.Database, "="):
		bad("the database must hold no = (parameters begin with a ?)")
	}
}

// Loopback reports that all hosts, if there are any, are on this machine.
func (u *DatabaseURI) Loopback() bool {
	return !slices.ContainsFunc(u.Hosts, func(host string) bool {
		return !strings.HasPrefix(host, "/") && host != "localhost" && !net.ParseIP(host).IsLoopback()
	})
}

// Addresses are those of the hosts, with their ports.
func (u *DatabaseURI) Addresses() (all []string) {
	for i, host := range u.Hosts {
		all = append(all, net.JoinHostPort(host, u.Ports[i]))
	}
	return all
}

// Place is where the hosts are, for people.
func (u *DatabaseURI) Place(form URIForm) string {
	if u.Socket != "" {
		return u.Socket
	}
	var all []string
	for i, host := range u.Hosts {
		if !strings.HasPrefix(host, "/") || u.Ports[i] != form.Port {
			host = net.JoinHostPort(host, u.Ports[i])
		}
		all = append(all, host)
	}
	return strings.Join(all, ",")
}

// Redact returns a URI that may be shown, of which u was read unless that failed with err. Of one that is well formed the
// password is masked, and what stands in its place without a user; of any other no more than the scheme is shown.
func (u *DatabaseURI) Redact(uri string, form URIForm, err error) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	switch {
	case err == nil && u.User == "":
		return uri
	case err == nil:
		_, rest, _ = strings.Cut(rest, "@")
		login := "***"
		if u.Password != "" {
			login = url.PathEscape(u.User) + ":***"
		}
		return scheme + "://" + login + "@" + rest
	case slices.Contains(form.Schemes, scheme):
		return scheme + "://***"
	}
	return "***"
}
