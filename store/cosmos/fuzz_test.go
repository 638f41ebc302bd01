package cosmos

import (
	"net/url"
	"strings"
	"testing"
)

func FuzzURINeverPanicsNorLeaks(f *testing.F) {
	for i, uri := range []string{
		"cosmos://acct/d/c?throughput=400", "cosmos://[::1]:1/?insecureHTTP=true", "cosmos://h.example:1", "cosmos://", "cosmos://a?=&;",
		"cosmos://%zz", "cosmos://a/b?serverless=1&autoscale=2", "mongodb://a",
	} {
		for j, key := range []string{"", "s3cret+/", "x@h/", "%zz", "a=b&c=d", "p\"\\\x00\xff", "a;b"} {
			f.Add(uri, key, byte(8*i+j))
		}
	}
	f.Fuzz(func(t *testing.T, uri, key string, shape byte) {
		if a, err := parseURI(uri); err == nil {
			u, err := url.Parse(a.endpoint)
			if err != nil || u.Host != a.host || u.Path != "/" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && a.loopback()) {
				t.Errorf("parseURI(%q) = endpoint %q of host %q, want a URL of https, or of http to a loopback address", uri, a.endpoint, a.host)
			}
		}
		// A key is base64 of 64 bytes, and so ends in ==.
		const canary = "c4naryS3cretc4nary"
		key = canary + key + "=="
		if shape&128 != 0 {
			key = url.QueryEscape(key)
		}
		shapes := []string{
			scheme + key + "@acct/d",
			scheme + "u:" + key + "@acct/d",
			scheme + key,
			scheme + "acct/" + key,
			scheme + "acct/d/" + key,
			scheme + "acct?" + key,
			scheme + "acct?AccountKey=" + key,
			"https://" + key + "@acct",
		}
		whole := shapes[shape%8]
		if shown := Redact(whole); strings.Contains(shown, canary) {
			t.Fatalf("Redact(%q) = %q, want no secret", whole, shown)
		}
		if _, err := parseURI(whole); err != nil && strings.Contains(err.Error(), canary) {
			t.Fatalf("parseURI(%q) = %v, want no secret", whole, err)
		}
	})
}

func FuzzConnectionStringNeverPanicsNorLeaks(f *testing.F) {
	for i, text := range []string{
		"AccountEndpoint=https://acct.documents.azure.com:443/;AccountKey=c2VjcmV0;", "AccountEndpoint=http://[::1]:8081/;AccountKey=x==",
		"DisableServerCertificateValidation=True;AccountEndpoint=https://localhost:1", ";;=;", "AccountEndpoint=://%zz",
	} {
		for j, key := range []string{"", "s3cret+/==", "a;b", "x=y", "@h/"} {
			f.Add(text, key, byte(5*i+j))
		}
	}
	f.Fuzz(func(t *testing.T, text, key string, shape byte) {
		const canary = "c4naryS3cretc4nary"
		key = canary + key
		for _, whole := range []string{text, []string{
			text + key, key + text, "AccountKey=" + key + ";" + text, text + ";AccountKey=" + key,
			"AccountEndpoint=https://" + key + "/;AccountKey=x", "AccountEndpoint=https://u:" + key + "@h/;AccountKey=x",
			key + "=" + text, "DisableServerCertificateValidation=" + key,
		}[shape%8]} {
			var a address
			got, err := a.parseConnectionString(whole)
			if err != nil {
				if strings.Contains(err.Error(), canary) {
					t.Fatalf("parseConnectionString(%q) = %v, want no secret", whole, err)
				}
				continue
			}
			if u, err := url.Parse(a.endpoint); err != nil || u.Host != a.host || got == "" || a.emulated() && !a.loopback() {
				t.Errorf("parseConnectionString(%q) = %+v, key %q, want an endpoint and a key", whole, a, got)
			}
		}
	})
}
