//go:build unix

package mongopeer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Real servers can't let the system choose a port, so they are given one that was free a moment
// ago. Until a server listens, another program may take it. Then the server ends, and
// is started again with another port.

// mostPorts is how many ports a server is started with at most.
const mostPorts = 5

// begin starts a server with a port that is free, and waits until it answers at an address, which
// may depend on the port.
func begin(ctx context.Context, p *process, start func(port int) error, addr func() string) error {
	for n := 1; ; n++ {
		port, err := peer.FreePort()
		if err != nil {
			return err
		}
		if err := start(port); err != nil {
			return err
		}
		err = await(ctx, p, addr())
		if n == mostPorts || !errors.Is(err, peer.ErrPortTaken) {
			return err
		}
		p.end()
	}
}

// await waits until a server that was started answers.
func await(ctx context.Context, p *process, addr string) error {
	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.done:
			cancel()
		case <-alive.Done():
		}
	}()
	for {
		_, err := askWithin(alive, 2*time.Second, "mongodb://"+addr+"/?directConnection=true", bson.D{{Key: "hello", Value: 1}})
		switch {
		case p.over(): // If there is an answer, it is another server's, which took the port.
			return fmt.Errorf("%s %s has ended: %w", p.program, strings.Join(p.flags, " "), p.log.Reason())
		case err == nil:
			return nil
		}
		if pause(ctx) != nil {
			return fmt.Errorf("%s %s doesn't answer: %w: %s", p.program, strings.Join(p.flags, " "), err, &p.log)
		}
	}
}
