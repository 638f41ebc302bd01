package mongopeer

import (
	"sync"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// program returns the path of the peer's program, built if it has to be. It wants the flags -addr
// and -data, prints its URI as its first line, and ends when its standard input does. It is found
// once in each test binary.
var program = sync.OnceValues(peer.Module{Name: "mongopeer", Title: "test peer", Instead: "set MONGODB_URI to a server"}.Build)
