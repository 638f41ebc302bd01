package scrub

import "testing"

// A password whose beginning is ordinary would garble texts, and be betrayed by what is missing.
func TestAnOrdinaryBeginningOfASecretIsNotTakenOut(t *testing.T) {
	for password, texts := range map[string][]string{
		"worker-7-Xk29":                      {"the record of worker-7 can't be read"},
		"backup-nightly-7f3k9":               {"backup-nightly: deadline exceeded", "the worker type is backup-nightly"},
		"2026-11-22-secret":                  {"no grant since 2026-11-22T18:00:00Z", "2026-11-22T18:00:00.000Z\tinfo\tstarted", "no grant on 2026-11-22"},
		"2026-11-22T18:00:00Z!":              {"no grant since 2026-11-22T18:00:00Z"},
		"127.0.0.1!a":                        {"dial tcp 127.0.0.1:27017: refused"},
		"SCRAM-SHA-256x":                     {"unable to authenticate using mechanism SCRAM-SHA-256: refused"},
		"leasectl-3f9a":                      {"try: leasectl-debug"},
		"max-lease-77":                       {"set max-leases"},
		"context deadline exceeded, my dear": {"read the head: context deadline exceeded: the store is slow"},
		"i/o timeout!":                       {"read tcp: i/o timeout"},
		"00000000000000000007x":              {"job:00000000000000000007 can't be read"},
	} {
		for _, text := range texts {
			if got := known(password).Scrub(text); got != text {
				t.Errorf("the password %q garbles %q: %q", password, text, got)
			}
		}
	}
}

func TestTheBeginningOfASecretThatWasCutOffIsTakenOut(t *testing.T) {
	for text, want := range map[string]string{
		"the key c4naryS3cretA… is bad":     "the key ***… is bad",
		"the key c4naryS3c/x is bad":        "the key ***/x is bad",
		"correct-horse-batt... is bad":      "***... is bad",
		`"correct-horse-batt" is bad`:       `"***" is bad`,
		"correct-horse-batter":              "***",
		"correct-horse-battle is another":   "correct-horse-battle is another",
		"C8y6yDjf5/R+ob0N8A7Cgv30VRDJ is b": "*** is b",
	} {
		var s Secrets
		s.Hide("c4naryS3cretAndMore")
		s.Hide("correct-horse-battery-staple")
		s.Hide("C8y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==")
		if got := s.Scrub(text); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestAQuotedValueIsTakenOut(t *testing.T) {
	for text, want := range map[string]string{
		`AccountKey="q1"`:                              `AccountKey="***"`,
		`AccountKey='q1';x`:                            `AccountKey='***';x`,
		`AccountKey = "a \"b\" c" is bad`:              `AccountKey = "***" is bad`,
		`AccountKey = q1`:                              `AccountKey = ***`,
		`{"error":"AccountKey=\"q1\" is bad","n":1}`:   `{"error":"AccountKey=\"***\" is bad","n":1}`,
		`{"e":"{\"password\":\"q\\\"1\",\"n\":1}"}`:    `{"e":"{\"password\":\"***\",\"n\":1}"}`,
		`Credential{Username:"jane", Password:"q, 1"}`: `Credential{Username:"jane", Password:"***"}`,
		`{'password': 'it\'s'}`:                        `{'password': '***'}`,
		`secret%3d"q1"`:                                `secret%3d"***"`,
		`AccountKey="cut off`:                          `AccountKey="***`,
		`sig="q1"&x=1`:                                 `sig="***"&x=1`,
		`invalid password: it has the wrong length`:    `invalid password: it has the wrong length`,
		`no password= is given`:                        `no password= is given`,
		`the design="7" of it`:                         `the design="7" of it`,
	} {
		if got := (Secrets{}).Scrub(text); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTheNameOfAFileIsNoSecret(t *testing.T) {
	for text, want := range map[string]string{
		"etcd://h/x?passwordFile=/run/secrets/etcd&user=u": "etcd://h/x?passwordFile=/run/secrets/etcd&user=u",
		"give passwordFile=PATH, or ETCD_PASSWORD":         "give passwordFile=PATH, or ETCD_PASSWORD",
		`{"tokenFile":"/run/token"}`:                       `{"tokenFile":"/run/token"}`,
		"?tlsCertificateKeyFilePassword=q1&a=b":            "?tlsCertificateKeyFilePassword=***&a=b",
		"?passwordFiles=q1":                                "?passwordFiles=***",
	} {
		if got := (Secrets{}).Scrub(text); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", text, got, want)
		}
	}
}
