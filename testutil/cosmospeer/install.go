package cosmospeer

import (
	"embed"
	"sync"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

//go:embed server/package.json server/package-lock.json server/server.js
var source embed.FS

// program is the path of the peer's script. It is found once in each test binary. It wants the flags --host, --port and
// --data, an existing folder; it prints its URI, with the scheme http, as its first line, and ends when its standard
// input does.
var program = sync.OnceValues(peer.Script{Name: "cosmospeer", Title: "Cosmos DB", Source: source}.Install)
