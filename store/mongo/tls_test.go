package mongo

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/internal/mongowire"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// before hands on commands to the peer.
func before(t *testing.T, secured *tls.Config) *fakeServer {
	t.Helper()
	u, err := url.Parse(mongopeer.URI(t))
	must(t, "Parse()", err)
	return serve(t, &fakeServer{secured: secured, whole: func(_ string, command bson.Raw) (reply bson.D) {
		conn, err := net.Dial("tcp", u.Host)
		if err == nil {
			var raw bson.Raw
			raw, err = mongowire.Ask(conn, command)
			err = errors.Join(err, bson.Unmarshal(raw, &reply), conn.Close())
		}
		if err != nil {
			t.Errorf("%s at the peer: %v", command, err)
		}
		return reply
	}})
}

func TestOverTLSTheServersAndTheClientsAreChecked(t *testing.T) {
	t.Parallel()
	cert, key := documenttest.Certificate(t, "leases.example")
	pair, err := tls.LoadX509KeyPair(cert, key)
	must(t, "LoadX509KeyPair()", err)
	text, err := os.ReadFile(cert)
	must(t, "ReadFile()", err)
	secret, err := os.ReadFile(key)
	must(t, "ReadFile()", err)
	must(t, "WriteFile()", os.WriteFile(key, append(secret, text...), 0o600)) // as the driver wants them
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(text)
	all := before(t, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}).addr
	strict := before(t, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}).addr
	other := strings.Replace(all, "127.0.0.1", "localhost", 1)
	for what, c := range map[string]struct {
		at, parameters string
		says, try      string // of refusals
		level          store.Level
		secured        string
	}{
		"by an own authority":     {all, "tlsCAFile=" + cert, "", "", store.LevelOK, "is verified"},
		"not verified":            {other, "tls=true&tlsInsecure=true", "", "", store.LevelWarn, "isn't verified (tlsInsecure in the URI)"},
		"by the system's":         {all, "tls=true", "certificate signed by unknown authority", "by tlsCAFile in the URI", store.LevelOK, "is verified"},
		"as other drivers do":     {all, "tls=true&tlsAllowInvalidCertificates=true", "certificate signed by unknown authority", "Go's driver knows no tlsAllowInvalidCertificates", store.LevelOK, "is verified"},
		"under another name":      {other, "tlsCAFile=" + cert, "certificate is valid for leases.example, not localhost", "the servers as these do", store.LevelOK, "is verified"},
		"without TLS":             {all, "", "connection closed", "check that the server runs", store.LevelOK, "not encrypted, to this machine alone"},
		"with a certificate":      {strict, "tlsCAFile=" + cert + "&tlsCertificateKeyFile=" + key, "", "", store.LevelOK, "is verified"},
		"with none that is asked": {strict, "tlsCAFile=" + cert, "certificate required", "by tlsCertificateKeyFile", store.LevelOK, "is verified"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := open(t, Options{URI: "mongodb://" + c.at + "/" + database(t, dial(t, mongopeer.URI(t))) + "?serverSelectionTimeoutMS=1000&" + c.parameters})
			err := l.Init(within(t, patience))
			for limit := within(t, patience); err != nil && !strings.Contains(err.Error(), c.says) && limit.Err() == nil; {
				err = l.Init(within(t, patience)) // A busy machine may take longer to be refused.
			}
			if c.says == "" {
				must(t, "Init()", err)
				must(t, "Append()", l.Append(within(t, patience), storetest.Grant("job", 1)))
			} else if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(store.Remedy(err), c.try) {
				t.Errorf("Init() = %v (%s), want %q and %q", err, store.Remedy(err), c.says, c.try)
			}
			found, err := l.Examine(within(t, patience))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, store.CheckTLS, c.level, c.secured)
		})
	}
}

func TestTheServerMeetsTheParametersOfTheURI(t *testing.T) {
	t.Parallel()
	s, client := before(t, nil), dial(t, mongopeer.URI(t))
	name := database(t, client)
	l := open(t, Options{URI: "mongodb://" + s.addr + "/" + name + "?maxPoolSize=1&appName=leasesOfTests&collection=other&serverSkew=7s"})
	must(t, "Init()", l.Init(within(t, patience)))
	var all sync.WaitGroup
	for _, workerType := range []string{"a", "b", "c", "d"} { // No operation needs a second connection.
		all.Go(func() {
			for what, call := range documenttest.Operations(l, storetest.Grant(workerType, 1)) {
				if err := call(within(t, patience)); err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s by one connection = %v", what, err)
				}
			}
		})
	}
	all.Wait()
	names, err := client.Database(name).ListCollectionNames(within(t, patience), bson.D{{Key: "name", Value: "other"}})
	must(t, "ListCollectionNames()", err)
	documenttest.Equal(t, "collections of the name", len(names), 1)
	now, err := l.Now(within(t, patience))
	must(t, "Now()", err)
	documenttest.Equal(t, "the skew", now.Skew, 7*time.Second)
	hello := append(s.sent("isMaster"), s.sent("hello")...)[0]
	documenttest.Equal(t, "the program's name", hello.Lookup("client", "application", "name").StringValue(), "leasesOfTests")
}

// Servers tell by an alert that they don't go on, and many alerts may mean anything.
func TestAnAlertOfTLSIsTheServersAnswer(t *testing.T) {
	t.Parallel()
	for alert, want := range map[string]string{
		"bad certificate": tryClient, "certificate required": tryClient, "unknown certificate authority": tryClient, "handshake failure": tryClient,
		"internal error": tryAlert, "protocol version not supported": tryAlert,
	} {
		_, try := (&login{hosts: []string{"db:1"}}).noServer("{ Addr: db:1, Type: Unknown, Last error: remote error: tls: " + alert + " }, ")
		documenttest.Equal(t, "what to do about "+alert, try, want)
	}
}
