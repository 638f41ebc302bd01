package advice

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// Brief is an error as it is shown. Where a MongoDB driver found no server, its dump
// of everything it knows is cut down to why each server can't be used.
func Brief(err error) error {
	selection, ok := errors.AsType[topology.ServerSelectionError](err)
	if !ok {
		return err
	}
	var servers []string
	for _, s := range selection.Desc.Servers {
		if s.LastError != nil {
			servers = append(servers, fmt.Sprintf("%s: %v", s.Addr, rootOf(s.LastError)))
		}
	}
	// The stores' errors are texts that were made of the driver's.
	before, _, cut := strings.Cut(err.Error(), "server selection error: ")
	if len(servers) == 0 || !cut {
		return err
	}
	before = strings.TrimSuffix(before, "context deadline exceeded: ")
	return &briefError{text: before + "no server found: " + strings.Join(servers, "; "), err: err}
}

// rootOf is what happened to a connection, without the operation and the address.
func rootOf(err error) error {
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	return err
}

// briefError is an error with another text.
type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.err }
