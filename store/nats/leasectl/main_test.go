package main

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/nats"
	"github.com/slotlease/slotlease/testutil/leasectltest"
	"github.com/slotlease/slotlease/testutil/natspeer"
)

const canary = "c4naryS3cret"

func TestMain(m *testing.M) { leasectltest.Main(m, main) }

// The servers' authority isn't one of the system's.
func TestTheCommandsWorkOnNATS(t *testing.T) {
	t.Parallel()
	cert, key := documenttest.Certificate(t)
	server := natspeer.Start(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q }\nauthorization { user: worker, password: %s }", cert, key, canary))
	leasectltest.Run(t, leasectltest.Harness{
		Fresh: func(t *testing.T) (string, []string) {
			t.Helper()
			return "nats://worker@" + server.Addr() + "/" + rand.Text() + "?tls=true", []string{"NATS_PASSWORD=" + canary, "SSL_CERT_FILE=" + cert}
		},
		Form:  "nats://USER@HOST:PORT,HOST:PORT/BUCKET",
		Every: 4 * time.Second, Failover: time.Second,
		Secrets: []string{canary}, Withheld: []string{"NATS_PASSWORD"},
		Bad: map[string]string{
			"nats://worker:" + canary + "@h":     "the database is missing",
			"nats://h/x?token=" + canary:         "parameter token is unknown",
			"nats://h/" + canary + ".x?tls=true": "the bucket must be made of",
		},
		Checks: []string{nats.CheckSync, nats.CheckReplicas, nats.CheckLimits},
	})
}
