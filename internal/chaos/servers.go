//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/store"
	_ "github.com/slotlease/slotlease/store/azblob"
	"github.com/slotlease/slotlease/store/cosmos"
	_ "github.com/slotlease/slotlease/store/etcd"
	_ "github.com/slotlease/slotlease/store/kubernetes"
	"github.com/slotlease/slotlease/store/mongo"
	_ "github.com/slotlease/slotlease/store/mysql"
	_ "github.com/slotlease/slotlease/store/postgres"
	_ "github.com/slotlease/slotlease/store/redis"
	_ "github.com/slotlease/slotlease/store/s3"
	"github.com/slotlease/slotlease/testutil/azuritepeer"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/kubepeer"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/redispeer"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

// serverStore is a store with a server.
type serverStore struct {
	// start starts a server that has on disk what it acknowledges, with its data in a folder.
	start func(ctx context.Context, data string) (server, error)
	// uri is that of a worker type's ledger, for a server or proxy at an address.
	uri  func(addr string, t workerType) string
	open func(ctx context.Context, uri string) (store.Ledger, error)
	// env are keys in the environment.
	env map[string]string
	// module is the folder of the module with the leasectl that opens the store; empty: the root's.
	module string
	// slower is by how much slots are longer than on the others, if it isn't 0.
	slower int
}

// serverStores are all, by their names in -store.
var serverStores = map[string]serverStore{
	// Each worker type has its own collection, which keeps them small: the test server reads a
	// whole collection to find its newest record.
	"mongo": {
		start: func(_ context.Context, data string) (server, error) { return mongopeer.StartIn(data) },
		uri: func(addr string, t workerType) string {
			return fmt.Sprintf("mongodb://%s/chaos?collection=leases-%s", addr, t.name)
		},
		open: func(ctx context.Context, uri string) (store.Ledger, error) {
			return mongo.Open(ctx, mongo.Options{URI: uri})
		},
	},
	"postgres": {
		start: func(_ context.Context, data string) (server, error) {
			return postgrespeer.StartIn(data, postgrespeer.Options{})
		},
		uri:  func(addr string, _ workerType) string { return "postgres://postgres@" + addr + "/postgres" },
		open: opened,
	},
	"mysql": {
		start: startMySQL,
		uri:   func(addr string, _ workerType) string { return "mysql://root@" + addr + "/chaos" },
		open:  opened,
	},
	"redis": {
		start: func(_ context.Context, data string) (server, error) {
			return redispeer.StartIn(data, redispeer.Options{})
		},
		uri:  func(addr string, _ workerType) string { return "redis://" + addr + "/0" },
		open: opened,
	},
	"s3": {
		start: func(_ context.Context, data string) (server, error) { return s3peer.StartIn(data) },
		uri: func(addr string, _ workerType) string {
			return "s3://chaos/leases?pathStyle=true&serverSkew=1ms&endpoint=" + url.QueryEscape("http://"+addr)
		},
		open:   opened,
		slower: 10, // The clock shows whole seconds; so it is with all below.
		env:    map[string]string{"AWS_ACCESS_KEY_ID": s3peer.ID, "AWS_SECRET_ACCESS_KEY": s3peer.Secret},
	},
	"azblob": {
		start: func(_ context.Context, data string) (server, error) { return azuritepeer.StartIn(data) },
		uri: func(addr string, _ workerType) string {
			return "azblob://" + azuritepeer.Account + "/chaos/leases?serverSkew=1ms&endpoint=" + url.QueryEscape("http://"+addr+"/"+azuritepeer.Account)
		},
		open:   opened,
		slower: 10,
		env:    map[string]string{"AZURE_STORAGE_KEY": azuritepeer.Key},
	},
	"cosmos": {
		start: func(_ context.Context, data string) (server, error) { return cosmospeer.StartIn(data) },
		uri: func(addr string, _ workerType) string {
			return "cosmos://" + addr + "/chaos/leases?insecureHTTP=true&serverSkew=1ms"
		},
		open:   opened,
		slower: 10,
		env:    map[string]string{cosmos.KeyVariable: cosmospeer.Key()},
	},
	"etcd": {
		start: func(_ context.Context, data string) (server, error) {
			return etcdpeer.StartIn(data, etcdpeer.Options{})
		},
		uri:    func(addr string, _ workerType) string { return "etcd://" + addr + "/chaos?oneMember=true" },
		open:   opened,
		module: "store/etcd",
		slower: 10,
	},
	"kubernetes": kubernetesStore(),
}

func opened(ctx context.Context, uri string) (store.Ledger, error) {
	return store.Open(ctx, uri, store.OpenOptions{})
}

// startMySQL starts a server with the database of the ledgers.
func startMySQL(ctx context.Context, data string) (server, error) {
	s, err := mysqlpeer.StartIn(data, mysqlpeer.Options{})
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("mysql", s.DSN())
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE chaos")
	return s, errors.Join(err, db.Close())
}

// kubernetesStore is a real API server, whose program make kubernetes builds. Each address has its own kubeconfig.
func kubernetesStore() serverStore {
	var peer *kubepeer.Server
	return serverStore{
		start: func(_ context.Context, data string) (_ server, err error) {
			peer, err = kubepeer.StartIn(data)
			return peer, err
		},
		uri: func(addr string, _ workerType) string {
			path, err := peer.Through(addr)
			if err != nil {
				panic(err) // The folder is the harness's own.
			}
			return "k8s:chaos?oneServer=true&kubeconfig=" + url.QueryEscape(path)
		},
		open:   opened,
		module: "store/kubernetes",
		slower: 10,
	}
}
