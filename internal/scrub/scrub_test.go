package scrub

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// known are the secrets of mongodb://user:password@db1:27017/jobs.
func known(password string) (s Secrets) {
	s.HideUser("jane:" + password)
	s.Publish("db1:27017", "jobs")
	return s
}

// The passwords that a text betrays if they are replaced wherever they are.
var ordinary = []string{"", "e", ":", "/", "db1", "db1:27017", "jobs", "jane", "connection", "27017", "E11000", "***", "deadline", "job-type-1", "%65", "d%62%31"}

func TestAnOrdinaryPasswordGarblesNoText(t *testing.T) {
	for _, password := range ordinary {
		for _, text := range []string{
			"connection() error: dial tcp db1:27017: connect: connection refused",
			"server selection error: context deadline exceeded, current topology: { Type: Unknown, Addr: db1:27017 }",
			"E11000 duplicate key error collection: jobs.WorkerLeases index: _id_ dup key: { _id: \"job-type-1:00000000000000000007\" }",
			"auth error: unable to authenticate jane using SCRAM-SHA-256: jane@jobs",
			"invalid password: it has the wrong length",
			"a token was refused: ask for another; see https://db1/help",
		} {
			if got := known(password).Scrub(text, "job-type-1:00000000000000000007"); got != text {
				t.Errorf("the password %q garbles %q: %q", password, text, got)
			}
		}
	}
}

func TestASecretIsTakenOutWhereItStands(t *testing.T) {
	for _, password := range append([]string{"p", "p%40ss", "p@ss/w:rd", "pa\"ss", "correct horse", "hunter2hunter2", "p ss"}, ordinary[1:]...) {
		plain, err := url.PathUnescape(password)
		if err != nil {
			t.Fatal(err)
		}
		s := known(password)
		for _, form := range []string{password, plain, url.QueryEscape(plain), url.PathEscape(plain)} {
			said := map[string]string{
				"user info jane:" + form + "@: bad":                          "user info jane:***@: bad",
				fmt.Sprintf("bad %q of a URI", "jane:"+form):                 "bad \"jane:***\" of a URI",
				fmt.Sprintf("invalid value for \"proxyPassword\": %q", form): "invalid value for \"proxyPassword\": \"***\"",
				fmt.Sprintf("{\"password\":%q,\"more\":\"plain\"}", form):    "{\"password\":\"***\",\"more\":\"plain\"}",
			}
			if !strings.ContainsAny(form, " \"") { // A URI can't hold these.
				said["dial mongodb://jane:"+form+"@db1/: refused"] = "dial mongodb://***:***@db1/: refused"
				want := "dial mongodb://db1/?proxyPassword=***&w=1"
				if strings.Contains(form, "@") { // What precedes it may all be a password.
					want = "dial mongodb://***:***&w=1"
				}
				said["dial mongodb://db1/?proxyPassword="+form+"&w=1"] = want
			}
			for text, want := range said {
				if got := s.Scrub(text); got != want {
					t.Errorf("the password %q in %q: %q, want %q", password, text, got, want)
				}
			}
		}
	}
}

func TestAKnownSecretIsFoundAnywhere(t *testing.T) {
	var s Secrets
	s.Hide("aGs3/K+y3Q==")
	s.Hide("correct-horse-battery")
	for text, want := range map[string]string{
		"the key aGs3/K+y3Q== is bad":            "the key *** is bad",
		"the key aGs3%2FK%2By3Q%3D%3D is bad":    "the key *** is bad",
		"the key aGs3/K+y3Q is bad":              "the key *** is bad",
		"correct-horse-batt… is bad":             "***… is bad",
		"the correct way":                        "the correct way",
		"xcorrect-horse-batterycorrect-horse-ba": "x******",
	} {
		if got := s.Scrub(text); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestSecretsOfOthersAreTakenOut(t *testing.T) {
	for text, want := range map[string]string{
		"proxy http://bob:x@proxy:3128: refused":                     "proxy http://***:***@proxy:3128: refused",
		"AccountEndpoint=https://h:443/;AccountKey=YQ==;":            "AccountEndpoint=https://h:443/;AccountKey=***;",
		"https://h/c?sv=2024&sig=a%2Fb%3D&se=1":                      "https://h/c?sv=2024&sig=***&se=1",
		"authorization=type%3dmaster%26ver%3d1.0%26sig%3dYQ%3d%3d x": "authorization=*** x",
		"type%3dmaster%26ver%3d1.0%26sig%3dYQ%3d%3d":                 "type%3dmaster%26ver%3d1.0%26sig%3d***",
		`{"access_token":"x\"y","expires":1}`:                        `{"access_token":"***","expires":1}`,
		"Bearer eyJhbGciOiJSUzI1NiJ9.eyJhdWQi.c2ln is old":           "Bearer *** is old",
		"designation=7, the signature is wrong":                      "designation=7, the signature is wrong",
	} {
		if got := (Secrets{}).Scrub(text); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTheUserOfAMongoDBURIIsShownIfItIsAName(t *testing.T) {
	for _, c := range []struct{ info, query, want string }{
		{"slotlease-rw:h4nterS2cret", "", "user slotlease-rw, ***"},
		{"svc.jobs:h4nterS2cret", "authSource=admin", "user svc.jobs, ***"},
		{"jobrunner2:jobrunner2", "", "user ***, ***"},
		{"AKIAIOSFODNN7EXAMPLE:h4nterS2cret", "authMechanism=MONGODB-AWS", "user ***, ***"},
		{"AKIAIOSFODNN7EXAMPLE:h4nterS2cret", "authMechanism=mongodb%2Daws&w=1", "user ***, ***"},
		{"AKIAIOSFODNN7EXAMPLE:h4nterS2cret", "authMechanism=%zz", "user ***, ***"},
		{"h4nterS2cret", "", "user ***, ***"},
		{"h4nterS2cret:", "authMechanism=SCRAM-SHA-256", "user ***, ***"},
		{"CN=worker7,OU=jobs", "tls=true&authMechanism=MONGODB-X509", "user CN=worker7,OU=jobs, CN=worker7,OU=jobs"},
	} {
		var s Secrets
		s.HideLogin(c.info, c.query)
		user, password, found := strings.Cut(c.info, ":")
		if !found || password == "" {
			password = user
		}
		if got := s.Scrub("user " + user + ", " + password); got != c.want {
			t.Errorf("of %s?%s: %q, want %q", c.info, c.query, got, c.want)
		}
	}
}

func FuzzScrub(f *testing.F) {
	for _, password := range append(ordinary, "p%40ss", "\xff", "a b", "%zz", "é:…") {
		f.Add("jane", password, "dial tcp: "+password+" … refused")
	}
	f.Fuzz(func(t *testing.T, user, password, text string) {
		var s Secrets
		s.HideUser(user + ":" + password)
		if got := s.Scrub(text); len(password) < 8 && !strings.ContainsAny(text, "@=:\"") && !strings.Contains(text, "eyJ") && len(user) < 8 && got != text {
			t.Errorf("Scrub(%q) with the password %q = %q, want it unchanged", text, password, got)
		}
		const canary = "c4naryS3cret"
		s = Secrets{}
		s.HideUser("jane:" + canary + password)
		for _, said := range []string{canary + password, strconv.Quote(canary + password), text + canary, "mongodb://jane:" + canary + password + "@" + text} {
			if got := s.Scrub(said); strings.Contains(got, canary) {
				t.Errorf("Scrub(%q) = %q, want no secret", said, got)
			}
		}
	})
}

// Encoders write some characters as others: a secret is known in what they have made of it, too.
func TestASecretIsTakenOutOfWhatWasEscaped(t *testing.T) {
	for _, password := range []string{"c4n&ry-c4nary", "c4n<ry>c4nary", "c4n\"ry-c4nary", "c4n'ry-c4nary", "c4n%26ry%3Cc4nary"} {
		plain, err := url.PathUnescape(password)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, _ := json.Marshal("refused: " + plain + "!")
		for text, want := range map[string]string{string(asJSON): `"refused: ***!"`, "<p>" + html.EscapeString(plain) + "</p>": "<p>***</p>"} {
			if got := known(password).Scrub(text); got != want {
				t.Errorf("Scrub(%s) = %s, want %s", text, got, want)
			}
		}
	}
}
