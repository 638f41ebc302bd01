package storekit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestADatabasesURIIsTakenApart(t *testing.T) {
	t.Parallel()
	form := URIForm{
		Schemes: []string{"kind", "other"}, Port: "7", Socket: "at=/FOLDER", Reserved: ".;", MostName: 5,
		Folder: func(host string) bool { return strings.HasPrefix(host, "/") },
	}
	for uri, want := range map[string]string{
		"kind://h/jobs":                        `"" "" at h:7, loopback false, jobs: kind://h/jobs`,
		"other://me@localhost,[::1]:8/jobs/":   `"me" "" at localhost:7,[::1]:8, loopback true, jobs: other://***@localhost,[::1]:8/jobs/`,
		"kind://m%2Fe:" + canary + "@h:9/a%20": `"m/e" "` + canary + `" at h:9, loopback false, a : kind://m%2Fe:***@h:9/a%20`,
		"kind://%2Frun,%2Frun:8/jobs?x=1&":     `"" "" at /run,/run:8, loopback true, jobs: kind://%2Frun,%2Frun:8/jobs?x=1&`,
		"kind:///jobs?at=/run%2Fs":             `"" "" at /run/s, loopback true, jobs: kind:///jobs?at=/run%2Fs`,
		"kind:///jobs":                         "uri: the host is missing: kind://HOST/DATABASE, or at=/FOLDER for a Unix socket: kind://***",
		canary + "://h/d":                      "uri: must begin with kind:// or other://: ***",
		"kind://h/longer":                      "uri: the database is not percent-encoded correctly, has one of / . ;, or there is more than one: kind://***",
		"kind://h/a;b":                         "uri: the database is not percent-encoded correctly, has one of / . ;, or there is more than one: kind://***",
		"other://" + canary + "!/?x=" + canary: "uri: each host must be a name, an IP address (IPv6 in brackets) or the percent-encoded folder of a Unix socket, " +
			"with a port from 1 to 65535 or none\nuri: the database is missing: kind://HOST/DATABASE\nuri: parameter x must be 1: other://***",
		"kind://me:a/" + canary + "@h/d?" + canary + "=1": "uri: the characters / ? # @ and % must be percent-encoded in a user, a password and a parameter\n" +
			"uri: each host must be a name, an IP address (IPv6 in brackets) or the percent-encoded folder of a Unix socket, with a port from 1 to 65535 or none\n" +
			"uri: the database is not percent-encoded correctly, has one of / . ;, or there is more than one: kind://***",
	} {
		var u DatabaseURI
		err := errors.Join(u.Read(uri, form, func(name, value string) error {
			if name == "at" {
				u.Socket = value
			} else if value != "1" {
				return errors.New("must be 1")
			}
			return nil
		})...)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%q %q at %s, loopback %v, %s", u.User, u.Password, u.Place(form), u.Loopback(), u.Database)
		}
		if got += ": " + u.Redact(uri, form, err); got != want {
			t.Errorf("Read(%q) and Redact() = %s, want %s", uri, got, want)
		}
	}
	form.Folder = nil
	if err := errors.Join(new(DatabaseURI).Read("kind://%2Frun/d", form, nil)...); err == nil || !strings.Contains(err.Error(), "must be a name or an IP address") {
		t.Errorf("Read() of a folder where hosts are none = %v, want an error", err)
	}
}
