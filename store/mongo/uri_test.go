package mongo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store/internal/documenttest"
)

// wantNoSecret demands that a text holds no secret, in no encoding and in no part of eight
// bytes.
func wantNoSecret(t *testing.T, what, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			for i := 0; i+8 <= len(form); i++ {
				if strings.Contains(text, form[i:i+8]) {
					t.Errorf("%s = %q: shows %q of a secret", what, text, form[i:i+8])
					return
				}
			}
		}
	}
}

func TestParseURI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uri, driver, database, collection string
	}{
		{uri: "mongodb://db1", driver: "mongodb://db1/"},
		{uri: "mongodb://db1/", driver: "mongodb://db1/"},
		{uri: "mongodb://db1:27018,[::1]:27019,db3/jobs", driver: "mongodb://db1:27018,[::1]:27019,db3/jobs", database: "jobs"},
		{uri: "mongodb://db1/jobs?collection=leases", driver: "mongodb://db1/jobs", database: "jobs", collection: "leases"},
		{uri: "mongodb://db1/?Collection=leases&replicaSet=rs0", driver: "mongodb://db1/?replicaSet=rs0", collection: "leases"},
		{uri: "mongodb://u:p@db1/jobs?tls=true&collection=my%20leases&w=1", driver: "mongodb://u:p@db1/jobs?tls=true&w=1", database: "jobs", collection: "my leases"},
		{uri: "mongodb://db1/jobs?a=b;collection=x;c=d", driver: "mongodb://db1/jobs?a=b&c=d", database: "jobs", collection: "x"},
		{uri: "mongodb+srv://u:p%40@cluster.example.net/jobs?collection=x", driver: "mongodb+srv://u:p%40@cluster.example.net/jobs", database: "jobs", collection: "x"},
		{uri: "mongodb://%2Ftmp%2Fmongodb-27017.sock/jobs", driver: "mongodb://%2Ftmp%2Fmongodb-27017.sock/jobs", database: "jobs"},
		{uri: "mongodb://db1/a%3Db", driver: "mongodb://db1/a%3Db", database: "a=b"},
		{uri: "mongodb://db1/a%2Fb", driver: "mongodb://db1/a%2Fb", database: "a/b"},
	} {
		a, err := parseURI(c.uri)
		if err != nil || a.driver != c.driver || a.database != c.database || a.collection != c.collection {
			t.Errorf("parseURI(%q) = driver %q, database %q, collection %q, %v, want %q, %q, %q",
				c.uri, a.driver, a.database, a.collection, err, c.driver, c.database, c.collection)
		}
	}
}

func TestTheURIMayAssumeMoreOfServers(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]address{
		"mongodb://db1/?serverSkew=1.5s&unsafeUnverified=true": {skew: 1500 * time.Millisecond, unsafe: true},
		"mongodb://db1/?SERVERSKEW=1h&unsafeunverified=0":      {skew: time.Hour},
		"mongodb://db1/?serverSkew=150ms":                      {skew: 150 * time.Millisecond},
		"mongodb://db1/?serverSelectionTimeoutMS=5":            {},
	} {
		a, err := parseURI(uri)
		if err != nil || a.skew != want.skew || a.unsafe != want.unsafe || strings.Contains(strings.ToLower(a.driver), "skew") || strings.Contains(a.driver, "nverified") {
			t.Errorf("parseURI(%q) = skew %v, unsafe %t, driver %q, %v, want %v, %t, and neither in what the driver gets",
				uri, a.skew, a.unsafe, a.driver, err, want.skew, want.unsafe)
		}
		documenttest.Equal(t, fmt.Sprintf("Redact(%q)", uri), Redact(uri), uri)
	}
	const uri = "mongodb://db1/?serverSkew=700ms&unsafeUnverified=true"
	for name, o := range map[string]Options{
		"the URI":             {URI: uri},
		"the URI and Options": {URI: uri, ServerSkew: 700 * time.Millisecond},
		"Options":             {URI: "mongodb://db1", ServerSkew: 700 * time.Millisecond, UnsafeUnverified: true},
	} {
		l := open(t, o)
		if l.skew != 700*time.Millisecond || l.members.clocks.Assumed != l.skew || !l.unsafe {
			t.Errorf("with %s: skew %v, unsafe %t, want 700ms, true", name, l.skew, l.unsafe)
		}
	}
}

// The cases are those of the connection string's specification.
func TestCredentialsAuthenticateWhereEveryDriverWould(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"mongodb://u:p@db1":                                                  "admin",
		"mongodb://u:p@db1/":                                                 "admin",
		"mongodb://u:p@db1/?collection=leases":                               "admin",
		"mongodb://u:p@db1/jobs":                                             "jobs",
		"mongodb://u:p@db1/jobs?collection=leases":                           "jobs",
		"mongodb://u:p@db1/my%2Djobs":                                        "my-jobs",
		"mongodb://u:p@db1/a+b":                                              "a+b",
		"mongodb://u:p@db1/jobs?authSource=admin":                            "admin",
		"mongodb://u:p@db1/jobs?authSource=people":                           "people",
		"mongodb://u:p@db1/?authSource=people":                               "people",
		"mongodb://u:p@db1/jobs?authMechanism=SCRAM-SHA-256":                 "jobs",
		"mongodb://u:p@db1/?authMechanism=SCRAM-SHA-1":                       "admin",
		"mongodb://u:p@db1/jobs?authMechanism=PLAIN":                         "jobs",
		"mongodb://u:p@db1/?authMechanism=PLAIN":                             "$external",
		"mongodb://db1/jobs?authMechanism=MONGODB-X509&tlsInsecure=true":     "$external",
		"mongodb://u:p@db1/jobs?authMechanism=MONGODB-AWS&collection=leases": "$external",
		"mongodb://u@db1/jobs?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:azure,TOKEN_RESOURCE:x": "$external",
	} {
		a, err := parseURI(uri)
		if err != nil {
			t.Errorf("parseURI(%q) = %v, want nil", uri, err)
			continue
		}
		o := options.Client().ApplyURI(a.driver)
		if o.Auth == nil || o.Auth.AuthSource != want {
			t.Errorf("auth of %q = %+v, %v, want source %q", uri, o.Auth, o.Validate(), want)
		}
	}
}

// It isn't parallel: it takes the resolver away from all.
func TestADNSThatIsDownIsToldFromAMissingName(t *testing.T) {
	resolver := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = resolver })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "udp", Err: ctx.Err()}
	}}
	_, err := Open(within(t, 100*time.Millisecond), Options{URI: "mongodb+srv://u:p@db.example.net/jobs"})
	documenttest.Says(t, "Open()", err, nil, "mongo: open: ", "db.example.net")
	wantSentinel(t, "Open()", err, nil)
	if e, ok := errors.AsType[*net.DNSError](err); !ok || e.IsNotFound {
		t.Errorf("Open() = %v, want that the DNS doesn't answer, not that there is no such name", err)
	}
}

func TestBadOptionsAreReportedAllAtOnceWithoutSecrets(t *testing.T) {
	t.Parallel()
	const canary = "c4naryS3cret"
	const awkward = "c4nary/S3cret:w@t?h#%everything"
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1"))
	must(t, "Connect()", err)
	t.Cleanup(func() { _ = client.Disconnect(t.Context()) })
	for _, c := range []struct {
		name string
		o    Options
		want []string
	}{
		{"nothing", Options{}, []string{"set either URI or Client"}},
		{"both", Options{URI: "mongodb://db1", Client: client}, []string{"set either URI or Client"}},
		{
			"several",
			Options{URI: "db1", Database: "a/b", Collection: "$x", ServerSkew: -1},
			[]string{"must begin with mongodb://", `character '/'`, "$ and NUL", "must not be negative"},
		},
		{"two databases", Options{URI: "mongodb://db1/a", Database: "b"}, []string{`database "b" in Options and "a" in the URI`}},
		{"two collections", Options{URI: "mongodb://db1/?collection=a", Collection: "b"}, []string{`collection "b" in Options and "a" in the URI`}},
		{"the server's database", Options{URI: "mongodb://db1/admin"}, []string{`database "admin"`}},
		{"a long database", Options{Client: client, Database: strings.Repeat("d", 64)}, []string{"1 to 63 bytes"}},
		{"the server's collection", Options{Client: client, Collection: "system.users"}, []string{"belong to the server"}},
		{"a dotted collection", Options{Client: client, Collection: "a."}, []string{"begin or end with a dot"}},
		{"a long collection", Options{Client: client, Collection: strings.Repeat("c", 121)}, []string{"1 to 120 bytes"}},
		{"a misspelt parameter", Options{URI: "mongodb://db1/?colection=" + canary}, []string{"did you mean collection?"}},
		{"collection twice", Options{URI: "mongodb://db1/?collection=a&collection=b"}, []string{"given twice"}},
		{"an empty collection", Options{URI: "mongodb://db1/?collection="}, []string{"collection is empty"}},
		{"two skews", Options{URI: "mongodb://db1/?serverSkew=1s", ServerSkew: time.Minute}, []string{"serverSkew 1s in the URI and 1m0s in Options: give one"}},
		{"a skew twice", Options{URI: "mongodb://db1/?serverSkew=1s&serverSkew=2s"}, []string{"serverSkew is given twice"}},
		{"a skew in words", Options{URI: "mongodb://db1/?serverSkew=soon"}, []string{`serverSkew is "soon": it must be a duration above 0, at most 1h0m0s, such as 500ms`}},
		{"a skew without a unit", Options{URI: "mongodb://db1/?serverSkew=500"}, []string{`serverSkew is "500": it must be a duration`}},
		{"a skew of nothing", Options{URI: "mongodb://db1/?serverSkew=0s"}, []string{`serverSkew is "0s": it must be a duration`}},
		{"a negative skew", Options{URI: "mongodb://db1/?serverSkew=-1s"}, []string{`serverSkew is "-1s": it must be a duration`}},
		{"a long skew", Options{URI: "mongodb://db1/?serverSkew=61m"}, []string{`serverSkew is "61m": it must be a duration`}},
		{"a misspelt skew", Options{URI: "mongodb://db1/?serverskewMS=5"}, []string{"did you mean serverSkew"}},
		{"unsafe, perhaps", Options{URI: "mongodb://db1/?unsafeUnverified=yes"}, []string{`unsafeUnverified is "yes": it must be true or false`}},
		{"a skew that may be half a URI", Options{URI: "mongodb://db1/?serverSkew=x%40" + canary}, []string{"serverSkew must be a duration"}},
		{"unsafe, or not", Options{URI: "mongodb://db1/?unsafeUnverified=false&unsafeUnverified=true"}, []string{"unsafeUnverified is given twice"}},
		{"unsafe twice", Options{URI: "mongodb://db1/?unsafeUnverified=true&unsafeUnverified=true"}, []string{"unsafeUnverified is given twice"}},
		{"misspelt and unsafe", Options{URI: "mongodb://db1/?unsafeUnverifiedAccount=true"}, []string{"did you mean serverSkew or unsafeUnverified?"}},
		{"no slash", Options{URI: "mongodb://jane:" + canary + "@db1?w=1"}, []string{"a / between the hosts and the ?"}},
		{"parameters without a ?", Options{URI: "mongodb://db1&proxyPassword=" + canary}, []string{"between the hosts"}},
		{"parameters after the database", Options{URI: "mongodb://db1/jobs&proxyPassword=" + canary}, []string{"between the database"}},
		{"no host", Options{URI: "mongodb://jane:" + canary + "@/db"}, []string{"host 1 is empty"}},
		{"no @", Options{URI: "mongodb://jane:" + canary + "/db"}, []string{"is the @ after the password missing?"}},
		{"a bad port", Options{URI: "mongodb://jane:" + canary + "@db1:99999/"}, []string{"port must be a number"}},
		{"a colon in the password", Options{URI: "mongodb://jane:" + canary + ":x@db1/"}, []string{"percent-encode"}},
		{"a slash in the password", Options{URI: "mongodb://jane:" + canary + "/x@db1/"}, []string{"percent-encode"}},
		{"an @ in the password", Options{URI: "mongodb://jane:x@" + canary + "@db1/"}, []string{"percent-encode"}},
		{"an @ and a slash in the password", Options{URI: "mongodb://jane:x@y/" + canary + "@db1/jobs"}, []string{"percent-encode"}},
		{"a percent in the password", Options{URI: "mongodb://jane:%zz" + canary + "@db1/"}, []string{"must be written %25"}},
		{"everything in the password", Options{URI: "mongodb://jane:" + awkward + "@db1/"}, []string{"uri:"}},
		{"a secret as user", Options{URI: "mongodb://" + canary + ":" + canary + ":@db1/"}, []string{"percent-encode"}},
		{"a bad parameter", Options{URI: "mongodb://jane:" + canary + "@db1/?maxPoolSize=many"}, []string{"maxPoolSize"}},
		{"a bad escape in a parameter", Options{URI: "mongodb://db1/?tlsCertificateKeyFilePassword=%zz" + canary}, []string{"tlsCertificateKeyFilePassword"}},
		{"a parameter without a value", Options{URI: "mongodb://jane:" + canary + "@db1/?" + canary}, []string{"name=value"}},
		{"a bad mechanism", Options{URI: "mongodb://jane:" + canary + "@db1/?authMechanism=" + "NONE"}, []string{"uri:"}},
		{"bad properties", Options{URI: "mongodb://jane:" + canary + "@db1/?authMechanism=MONGODB-AWS&authMechanismProperties=" + canary}, []string{"uri:"}},
		{"a property of another mechanism", Options{URI: "mongodb://jane:" + canary + "@db1/?authMechanism=SCRAM-SHA-1&authMechanismProperties=AWS_SESSION_TOKEN:" + canary}, []string{"uri:"}},
		{"a missing certificate", Options{URI: "mongodb://jane:" + canary + "@db1/?tlsCertificateKeyFile=/does/not/exist&tlsCertificateKeyFilePassword=" + canary}, []string{"/does/not/exist"}},
		{"two hosts and direct", Options{URI: "mongodb://jane:" + canary + "@db1,db2/?directConnection=true&proxyPassword=" + canary}, []string{"direct"}},
	} {
		l, err := Open(t.Context(), c.o)
		if err == nil {
			t.Errorf("%s: Open() = %v, nil, want an error", c.name, l)
			continue
		}
		documenttest.Says(t, c.name+": Open()", err, nil, c.want...)
		if !strings.HasPrefix(err.Error(), "mongo: open: ") {
			t.Errorf("%s: Open() = %v, want it to begin with the operation", c.name, err)
		}
		wantNoSecret(t, c.name, err.Error(), canary, awkward)
	}
}

func TestRedactShowsNoSecret(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"mongodb://jane:c4naryS3cret@db1,db2/jobs?collection=x&w=1": "mongodb://***:***@db1,db2/jobs?collection=x&w=1",
		"mongodb+srv://c4naryS3cret@db1":                            "mongodb+srv://***:***@db1",
		"mongodb://db1/?tlsCertificateKeyFilePassword=c4naryS3cret&authMechanismProperties=AWS_SESSION_TOKEN:c4naryS3cret&PROXYPASSWORD=c4naryS3cret&tls=true": "mongodb://db1/?tlsCertificateKeyFilePassword=***&authMechanismProperties=***&PROXYPASSWORD=***&tls=true",
		"mongodb://db1/?tlsCertificateKeyFile%50assword=c4naryS3cret":                                                                                          "mongodb://db1/?tlsCertificateKeyFile%50assword=***",
		"mongodb://jane:c4naryS3cret/db":  "mongodb://***",
		"mongodb+srv://a:b@c:d@e":         "mongodb+srv://***",
		"postgres://jane:c4naryS3cret@db": "***",
		"":                                "***",
	} {
		documenttest.Equal(t, fmt.Sprintf("Redact(%q)", uri), Redact(uri), want)
	}
}

func TestLedgerShowsNoSecret(t *testing.T) {
	t.Parallel()
	l := open(t, Options{URI: "mongodb://jane:c4naryS3cret@127.0.0.1:1/jobs?collection=leases"})
	documenttest.Equal(t, "String()", l.String(), "mongo jobs.leases at 127.0.0.1:1")
}
