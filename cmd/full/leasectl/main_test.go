package main

import (
	"slices"
	"testing"

	"github.com/slotlease/slotlease/store"
)

func TestTheReleasedProgramOpensEveryStore(t *testing.T) {
	for _, scheme := range []string{"azblob", "cosmos", "etcd", "etcds", "k8s", "mariadb", "mongodb", "mysql", "nats", "postgres", "redis", "s3", "sqlite"} {
		if !slices.Contains(store.Schemes(), scheme) {
			t.Errorf("Schemes() = %q, want %s", store.Schemes(), scheme)
		}
	}
}
