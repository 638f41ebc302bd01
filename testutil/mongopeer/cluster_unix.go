//go:build unix

package mongopeer

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Cluster is a sharded cluster of real servers: a router, and two shards and the config servers of
// one member each.
type Cluster struct {
	sets   []*Set
	router process
	addr   string
}

// StartCluster starts a cluster of the programs that the environment variables MONGOD and MONGOS
// name, which ends with the test. It skips the test if one is missing, or fails it if
// REQUIRE_STORES contains "mongod".
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	t.Cleanup(func() { c.end(t) })
	if err := c.start(need(t, "MONGOD"), need(t, "MONGOS"), t.TempDir()); err != nil {
		t.Fatalf("start a sharded cluster: %v", err)
	}
	return c
}

func (c *Cluster) start(mongod, mongos, dir string) error {
	for _, o := range []SetOptions{{Name: "config", role: "configsvr"}, {Name: "shard0", role: "shardsvr"}, {Name: "shard1", role: "shardsvr"}} {
		o.Members = 1
		s, err := newSet(mongod, dir, o)
		c.sets = append(c.sets, s)
		if err != nil {
			return err
		}
	}
	c.router = process{program: mongos, data: filepath.Join(dir, "mongos")}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	err := begin(ctx, &c.router, func(port int) error {
		c.addr, c.router.flags = peer.Local(port), mongosFlags(port, c.sets[0].name())
		return c.router.start()
	}, func() string { return c.addr })
	if err != nil {
		return err
	}
	for _, s := range c.sets[1:] {
		if _, err := ask(ctx, c.URI(), bson.D{{Key: "addShard", Value: s.name()}}); err != nil {
			return fmt.Errorf("addShard %s: %w", s.name(), err)
		}
	}
	return nil
}

// name is a set of one member as cluster commands name it.
func (s *Set) name() string { return s.o.Name + "/" + s.members[0].bridge.addr() }

// URI is that of the router.
func (c *Cluster) URI() string { return "mongodb://" + c.addr + "/" }

func (c *Cluster) end(t testing.TB) {
	c.router.end()
	if text := c.router.log.String(); t.Failed() && text != "" {
		t.Logf("log of mongos:\n%s", text)
	}
	for _, s := range c.sets {
		s.end(t)
	}
}
