package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// login asks for a token. It is the one request that has none.
const login = "/etcdserverpb.Auth/Authenticate"

// token is what a user gets for a password. etcd forgets it after 5 min without use, and its members do when they are
// restarted.
//
// etcd's own client renews tokens, too, but sends the old one along when it asks for a new one: members of version 3.4
// refuse that, and it asks again, thousands of times a second.
type token struct{ text string }

// signed is a context with the token of the user, which is asked for unless there is one. An empty token means that the
// cluster has no authentication.
func (c *cluster) signed(ctx context.Context, cc *grpc.ClientConn) (context.Context, *token, error) {
	if c.user == "" {
		return ctx, nil, nil
	}
	t := c.token.Load()
	if t == nil {
		var err error
		if t, err = c.renew(ctx, cc, nil); err != nil {
			return ctx, nil, err
		}
	}
	if t.text == "" {
		return ctx, t, nil
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, t.text), t, nil
}

// renew asks for a token in place of one that wasn't accepted, unless another operation has done so.
func (c *cluster) renew(ctx context.Context, cc *grpc.ClientConn, refused *token) (*token, error) {
	select {
	case c.renewing <- struct{}{}:
		defer func() { <-c.renewing }()
	case <-ctx.Done():
		return nil, unsent{ctx.Err()}
	}
	if t := c.token.Load(); t != refused {
		return t, nil
	}
	password := c.password
	if c.passwords != nil {
		password = c.passwords.Now()
	}
	if c.current != nil {
		var err error
		if password, err = c.current.Get(ctx); err != nil {
			return nil, unsent{err}
		}
	}
	reply, err := pb.NewAuthClient(cc).Authenticate(ctx, &pb.AuthenticateRequest{Name: c.user, Password: password})
	switch {
	case err == nil:
		c.token.Store(&token{reply.Token})
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled):
		c.token.Store(&token{})
	default:
		return nil, unsent{rpctypes.Error(err)}
	}
	return c.token.Load(), nil
}

// unaccepted reports whether a request was refused for its token, and did nothing.
func unaccepted(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrAuthOldRevision)
}

// stream opens a stream with the token.
func (c *cluster) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, _, err := c.signed(ctx, cc)
	if err != nil {
		return nil, err
	}
	return open(ctx, desc, cc, method, opts...)
}
