package s3peer

import (
	"sync"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// program is the path of the server's program. It wants the flags -addr and -data, prints its URI as its first line,
// and ends when its standard input does. It is found once in each test binary.
var program = sync.OnceValues(peer.Module{Name: "s3peer", Title: "S3 peer"}.Build)
