package secret

import "testing"

func TestSecretsAreHiddenWhereTheyOverlapOrAreCutOff(t *testing.T) {
	for _, c := range []struct{ uri, text, want string }{
		{"mongodb://u:correct-horse-battery@h/jobs", `uri "mongodb://u:correct-horse-ba"… is bad`, `uri "mongodb://u:***"… is bad`},
		{"mongodb://u:correct-horse-battery@h/jobs", "the correct way", "the correct way"},
		{"mongodb://u:correct horse@h/jobs", `field "u:correct": bad`, `field "u:***": bad`},
		{"mongodb://h/?proxyPassword=a:bcd@efg", "bad value a:bcd@efg of mongodb://h/?proxyPassword=a:bcd@efg", "bad value *** of mongodb://***:***"},
		{"mongodb://u:h4nterS2cret@h/?tlsCertificateKeyFile=/etc/slotlease/client.pem&tlsCertificateKeyFilePassword=h4nterS2cret", "open /etc/slotlease/client.pem: no such file (h4nterS2cret)", "open /etc/slotlease/client.pem: no such file (***)"},
		{"mongodb://h/?tlsCertificateKeyFilePassword=/etc/slotlease/client.pem", "open /etc/slotlease/client.pem: no such file", "open ***: no such file"},
	} {
		if got := InURI(c.uri).Scrub(c.text); got != c.want {
			t.Errorf("secret.InURI(%q).Scrub(%q) = %q, want %q", c.uri, c.text, got, c.want)
		}
	}
}
