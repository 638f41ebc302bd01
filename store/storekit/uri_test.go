package storekit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// canary is a secret that no error may show.
const canary = "c4n4ry-0f-s3cr3ts"

func TestParametersReportAllFaultsAndQuoteNoValue(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                            "",
		"&&":                          "",
		"a=1&b=x%20y+z":               "",
		"a=":                          "",
		canary:                        "uri: each parameter must be written name=value",
		canary + "=1":                 "uri: each parameter must be written name=value",
		"a":                           "uri: parameter a has an invalid value",
		"a=1&a=" + canary:             "uri: parameter a is given twice",
		"c=" + canary:                 "uri: parameter c is unknown: use a, b",
		"a=%zz" + canary:              "uri: parameter a has an invalid value",
		"a=bad&b=bad&c=1&" + canary:   "uri: parameter a must be good\nuri: parameter b must be good\nuri: parameter c is unknown: use a, b\nuri: each parameter must be written name=value",
		"secret=" + canary + "&a=1&a": "uri: parameter secret is unknown: use a, b\nuri: parameter a is given twice",
	} {
		got := map[string]string{}
		err := errors.Join(Parameters(query, []string{"a", "b"}, func(name, value string) error {
			got[name] = value
			if value == "bad" {
				return errors.New("must be good")
			}
			return nil
		})...)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != want || strings.Contains(text, canary) {
			t.Errorf("Parameters(%q) = %q, want %q", query, text, want)
		}
		if b, ok := got["b"]; ok && b != "x y z" && b != "bad" {
			t.Errorf("Parameters(%q) gave b = %q, want it decoded", query, b)
		}
	}
}

func TestEndpointsAreSchemeAndHost(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"https://minio.example":       "https://minio.example false",
		"http://minio.example:9000":   "http://minio.example:9000 true",
		"http://127.0.0.1:9000":       "http://127.0.0.1:9000 false",
		"http://[::1]:9000":           "http://[::1]:9000 false",
		"http://localhost:1":          "http://localhost:1 false",
		"http://10.0.0.1":             "http://10.0.0.1 true",
		"https://u:p@h":               "",
		"https://h?k=" + canary:       "",
		"https://h?":                  "",
		"https://h#f":                 "",
		"ftp://h":                     "",
		"h:9000":                      "",
		"https://":                    "",
		"https://h:":                  "",
		"https://h:0":                 "",
		"https://h:65536":             "",
		"https://-h":                  "",
		"https://h h":                 "",
		"https://" + canary + "@":     "",
		"https://%zz" + canary:        "",
		canary:                        "",
		"https://h.example:9000/path": "https://h.example:9000/path false",
	} {
		u, err := Endpoint(value)
		got := ""
		if err == nil {
			got = fmt.Sprintf("%s %v", u, Plain(u))
		}
		if got != want || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("Endpoint(%q) = %q, %v, want %q", value, got, err, want)
		}
	}
}

func TestFoldersHaveNamesThatNeedNoEncoding(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"": true, "a": true, "a/b-1/c_2.x": true, "...": false, "a/../b": false, "a//b": false, "/a": false, "a/": false, "a b": false, "a%2fb": false,
		"ä": false, strings.Repeat("a", 512): true, strings.Repeat("a", 513): false,
	} {
		if err := CheckFolder(name); (err == nil) != want {
			t.Errorf("CheckFolder(%.40q) = %v, want fit: %v", name, err, want)
		}
	}
}

func TestASkewIsAPositiveDuration(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"500ms": 500 * time.Millisecond, "1h": time.Hour, "1h1ns": 0, "0s": 0, "-1s": 0, "1": 0, "": 0} {
		if got, err := SkewOf(value); got != want || (err == nil) != (want > 0) {
			t.Errorf("SkewOf(%q) = %v, %v, want %v", value, got, err, want)
		}
	}
	if v, err := Truth("true"); !v || err != nil {
		t.Errorf("Truth(true) = %v, %v", v, err)
	}
	if _, err := Truth("yes"); err == nil {
		t.Error("Truth(yes) = nil, want an error")
	}
}

func TestOfAURIThatCannotBeReadNoMoreThanTheSchemeIsShown(t *testing.T) {
	for uri, want := range map[string]string{"s3://u:hunter2@b": "s3://***", "etcds://hunter2": "etcds://***", "s3:hunter2": "***", "hunter2": "***", "": "***"} {
		if got := Masked(uri, "s3://", "etcd://", "etcds://"); got != want {
			t.Errorf("Masked(%q) = %q, want %q", uri, got, want)
		}
	}
}
