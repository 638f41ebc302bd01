//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// etcd is one server, and its own library for elections, with sessions of the bound.
type etcd struct{}

func (etcd) name() string { return "etcd" }

func (etcd) serve(ctx context.Context, dir string) (*service, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	others, err := freePort()
	if err != nil {
		return nil, err
	}
	clients, members := "http://127.0.0.1:"+port, "http://127.0.0.1:"+others
	stop, err := server(ctx, dir, "etcd", port, "--data-dir", dir+"/data", "--name", "one",
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", members, "--initial-advertise-peer-urls", members, "--initial-cluster", "one="+members)
	if err != nil {
		return nil, err
	}
	return &service{address: clients, operations: func(ctx context.Context) (int64, error) { return received(ctx, clients) }, stop: stop}, nil
}

// received is how many messages clients have sent: calls, and what they send in streams, such
// as what keeps a lease alive.
func received(ctx context.Context, address string) (n int64, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), "} "); ok && strings.HasPrefix(name, "grpc_server_msg_received_total{") {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", lines.Text(), err)
			}
			n += int64(f)
		}
	}
	return n, lines.Err()
}

func (etcd) work(ctx context.Context, n node) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{n.address}, DialTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for ctx.Err() == nil {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(n.bound/time.Second)))
		if err != nil {
			return err
		}
		election := concurrency.NewElection(session, "/"+n.lease)
		if err := election.Campaign(ctx, n.id); err != nil {
			_ = session.Close()
			continue
		}
		n.began()
		select {
		case <-ctx.Done():
			limited, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			err := election.Resign(limited)
			cancel()
			_ = session.Close()
			return err
		case <-session.Done():
		}
	}
	return nil
}
