package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	driveraddress "go.mongodb.org/mongo-driver/v2/mongo/address"

	"github.com/slotlease/slotlease/store/storekit"
)

const (
	tryServer   = "check that the server runs and that host and port are right"
	tryNames    = "let this machine reach the members by the names that the replica set's configuration gives them, or change those: rs.reconfig()"
	trySet      = "correct replicaSet in the URI, or leave it out where there is no replica set"
	tryInitiate = "again in a moment if the servers have just started; else make a replica set of them: rs.initiate()"
	tryElection = "again in a moment: an election takes up to 12 s; if it lasts, start the members that don't answer"
	tryTrust    = "name the authority of the servers' certificates by tlsCAFile in the URI, and the servers as these do; Go's driver knows no tlsAllowInvalidCertificates and no tlsAllowInvalidHostnames"
	tryClient   = "name a certificate of the client that the servers accept by tlsCertificateKeyFile in the URI"
	tryAlert    = "the servers answer, and refuse TLS with this machine: their log says why; services may do so to addresses that aren't on their access list"
	trySRV      = "check the host in the URI, for which the DNS must have an SRV record, and the DNS of this machine"
)

// remedy is what to do about an error that isn't a server's answer, which says itself what is wrong.
func (l *login) remedy(err error) string {
	_, network := errors.AsType[net.Error](err)
	_, picture, selecting := strings.Cut(err.Error(), saidSelection)
	switch _, noName := errors.AsType[*net.DNSError](err); {
	case selecting:
		_, try := l.noServer(picture)
		return try
	case noName && l.srv:
		return trySRV
	case network, mongo.IsNetworkError(err), mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return tryServer
	}
	return ""
}

// inPicture matches a server in the driver's picture of the deployment: its address, what it is, and why that isn't known.
var inPicture = regexp.MustCompile(`\{ Addr: ([^,{}]+), Type: (\w+)(?:, Tag sets: .*?)?(?:, Average RTT: \d+)?(?:, Last error: (.*?))? \}, `)

// clientRefused matches what servers say of a client's certificate, or the lack of one. Other alerts may mean anything.
var clientRefused = regexp.MustCompile(`remote error: tls: (?:[a-z ]*certificate|handshake failure|access denied)`)

// handshake matches what the driver says of every connection that it couldn't make, before it says why.
var handshake = regexp.MustCompile(`^(error occurred during connection handshake: )?(dial \w+( \S+)?: )?(connect: )?`)

// The driver's names of what servers are.
const (
	kindSecondary = "RSSecondary"
	kindGhost     = "RSGhost"
	kindUnknown   = "Unknown"
	// renamed are those of them that have a name which the URI doesn't know.
	renamed = "renamed"
)

// kinds say what a server is.
var kinds = map[string]string{
	"RSPrimary":   "the primary",
	kindSecondary: "a secondary",
	"RSArbiter":   "an arbiter",
	"RSMember":    "a member that can't serve now",
	kindGhost:     "not in a replica set yet",
	"Standalone":  "a standalone server",
	"Mongos":      "a mongos",
}

const noServers = "no server found"

// noServer is why no server could be used, by the driver's picture: what each is, or why that isn't known; and what to do.
func (l *login) noServer(picture string) (why, try string) {
	seen := map[string]int{}
	var servers, addrs []string
	for _, s := range inPicture.FindAllStringSubmatch(picture, -1) {
		addr, kind := s[1], s[2]
		seen[kind]++
		said, answered := addr+" is "+kinds[kind], kinds[kind] != ""
		if !answered {
			why := handshake.ReplaceAllString(strings.TrimPrefix(plainConnection(s[3]), addr+": "), "")
			said = addr + ": " + cmp.Or(why, "no answer yet")
		}
		if !answered && !l.names(addr) {
			said += " (the name is from the replica set's configuration)"
			seen[renamed]++
		}
		addrs, servers = append(addrs, addr), append(servers, said)
	}
	slices.Sort(servers)
	list := strings.Join(servers, "; ")
	if others := l.otherSet(addrs); others != "" && seen[kindUnknown] == len(servers) && seen[renamed] == 0 {
		return strings.TrimSuffix(others+"; "+list, "; "), trySet
	}
	trust := storekit.OfCertificate(errors.New(list), tryTrust)
	switch n := len(servers); {
	case n == 0:
		return noServers, tryServer
	case seen[kindGhost] == n:
		return "no primary: starting, or rs.initiate() wasn't called: " + list, tryInitiate
	case seen[kindUnknown] < n:
		return "no primary: an election? " + list, tryElection
	case trust != "":
		return noServers + ": " + list, trust
	case clientRefused.MatchString(list):
		return noServers + ": " + list, tryClient
	case strings.Contains(list, "remote error: tls: "):
		return noServers + ": " + list, tryAlert
	case seen[renamed] == n:
		return noServers + ": " + list, tryNames
	}
	return noServers + ": " + list, tryServer
}

// otherSet names the servers of the URI that the driver has left out, because they have answered as members of another replica
// set than the URI says, or of none.
func (l *login) otherSet(kept []string) string {
	out := slices.DeleteFunc(slices.Clone(l.hosts), func(h string) bool {
		return slices.ContainsFunc(kept, func(k string) bool { return same(h, k) })
	})
	if l.replicaSet == "" || len(out) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: not in the replica set %s, as the URI says", strings.Join(out, ", "), l.replicaSet)
}

// names reports that the URI, or its SRV record, names a server. The driver leaves these names for
// those that the replica set's members tell:
// https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-discovery-and-monitoring.md#clients-use-the-hostnames-listed-in-the-replica-set-config-not-the-seed-list
func (l *login) names(server string) bool {
	return len(l.hosts) == 0 || slices.ContainsFunc(l.hosts, func(h string) bool { return same(h, server) })
}

// same reports that two addresses are the same to the driver, which adds a missing port.
func same(a, b string) bool {
	return driveraddress.Address(a).String() == driveraddress.Address(b).String()
}
