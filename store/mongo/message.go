package mongo

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	driveraddress "go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// message is the text of a driver's error: what went wrong, without the command, its
// session, cluster times and the driver's picture of the deployment. Those are its detail.
func (l *login) message(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[topology.ServerSelectionError](err); ok {
		return strings.Replace(text, e.Error(), l.noServer(e.Desc), 1)
	}
	if said, e := deniedToAnother(err); e != nil {
		return strings.Replace(text, e.Error(), l.loginFailed(said), 1)
	}
	if e, ok := errors.AsType[mongo.CommandError](err); ok {
		return strings.Replace(text, e.Error(), l.answer(e), 1)
	}
	if e, ok := errors.AsType[mongo.WriteException](err); ok {
		return strings.Replace(text, e.Error(), l.write(e), 1)
	}
	return plainConnection(text)
}

// connectionID matches how the driver names a connection: by the server and a number.
var connectionID = regexp.MustCompile(`connection\((\S*?)(?:\[-\d+\])?\) `)

// plainConnection names the server alone in what happened to a connection.
func plainConnection(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(connectionID.ReplaceAllString(text, "$1: "), ": : ", ": "), ": ")
}

// clearedPool matches what the driver says to an operation that wanted a connection just after
// another one had been denied the login. That error isn't in the chain; the server's name for
// its code is in the text.
var clearedPool = regexp.MustCompile(`^connection pool for \S+ was cleared because another operation failed with: .*\bauth error: .*\((AuthenticationFailed|UserNotFound|AtlasError)\) (.*)`)

// deniedToAnother finds, in an error, that of an operation which wanted a connection just after
// another one was denied the login, and what the server had said to that.
func deniedToAnother(err error) (said string, cleared error) {
	e, ok := errors.AsType[poolError](err)
	if !ok {
		return "", nil
	}
	m := clearedPool.FindStringSubmatch(e.Error())
	if m == nil || m[1] == "AtlasError" && !atlasDenies.MatchString(m[2]) {
		return "", nil
	}
	return m[2], e
}

// poolError is the driver's error of a pool that was cleared, whose type has no public name.
type poolError interface {
	error
	driver.RetryablePoolError
}

// loginFailed is the text of a login that was denied. Servers say why only in their logs, but
// proxies say it here.
func (l *login) loginFailed(said string) string {
	text := "authentication failed" + l.who()
	if why := strings.Trim(strings.TrimPrefix(said, "Authentication failed"), ".: "); why != "" {
		text += ": " + why
	}
	return text
}

// answer is the text of a reply to a command that failed as a whole.
func (l *login) answer(e mongo.CommandError) string {
	switch {
	case isLogin(e) && hasCode(e, codeAuthenticationFailed, codeUserNotFound, codeAtlasError):
		return l.loginFailed(e.Message)
	case hasCode(e, codeUnauthorized), hasCode(e, codeAtlasError) && refusedAction.MatchString(e.Message):
		return l.unauthorized(e.Message)
	case hasCode(e, notPrimaryCodes...):
		return fmt.Sprintf("no primary: an election? (%s: %s)", cmp.Or(e.Name, "not primary"), e.Message)
	}
	return plainConnection(e.Error())
}

// write is the text of a reply to a write that was refused, or not confirmed. Of a record there is
// one write, and the details of its error repeat the document.
func (l *login) write(e mongo.WriteException) string {
	var said []string
	for _, w := range e.WriteErrors {
		switch {
		case w.Code == codeUnauthorized:
			said = append(said, l.unauthorized(w.Message))
		case slices.Contains(notPrimaryCodes, w.Code):
			said = append(said, "no primary: an election? ("+w.Message+")")
		default:
			said = append(said, w.Message)
		}
	}
	if w := e.WriteConcernError; w != nil {
		said = append(said, "not confirmed: "+w.Message)
	}
	return strings.Join(said, "; ")
}

// notPrimaryCodes are the codes of servers that are not, or no longer, the primary:
// https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-discovery-and-monitoring.md#not-writable-primary-and-node-is-recovering
//
// A mongos that finds no primary of a shard says so by the last one, FailedToSatisfyReadPreference.
var notPrimaryCodes = []int{10107, 10058, 13435, 11600, 11602, 13436, 189, 91, 133}

// refusedCommand matches how a server refuses a command for lack of a right, with the
// database, the command and the collection.
var refusedCommand = regexp.MustCompile(`not authorized on (\S+) to execute command \{ ?(\w+): "?([^",{}]*)`)

// refusedAction matches how Atlas does, with the action and the namespace.
var refusedAction = regexp.MustCompile(`not allowed to do action \[(\w+)\] on \[([^][]*)\]`)

// actions are the rights that commands take, where they aren't called as the command is.
var actions = map[string]string{"delete": "remove", "create": "createCollection", "aggregate": "collStats"}

// unauthorized is the text of a refusal for lack of a right. The server's own has the whole
// command, with its session and the signature of its time.
func (l *login) unauthorized(said string) string {
	const needsLogin = " requires authentication"
	if name, ok := strings.CutSuffix(strings.TrimPrefix(said, "command "), needsLogin); ok {
		return fmt.Sprintf("not authorized: %s%s%s", name, needsLogin, l.who())
	}
	if m := refusedAction.FindStringSubmatch(said); m != nil {
		return fmt.Sprintf("not authorized: %s on %s%s", m[1], m[2], l.who())
	}
	m := refusedCommand.FindStringSubmatch(said)
	if m == nil {
		return said + l.who()
	}
	action := cmp.Or(actions[m[2]], m[2])
	if m[2] == "aggregate" && strings.Contains(said, "$changeStream") {
		action = "changeStream"
	}
	on := m[1] + "." + m[3]
	if action == "listCollections" {
		on = m[1]
	}
	return fmt.Sprintf("not authorized: %s on %s%s", action, strings.TrimSuffix(on, "."), l.who())
}

// noServer is why no server could be used: what each that is known said, or why it didn't.
func (l *login) noServer(t description.Topology) string {
	if len(t.Servers) == 0 {
		return l.otherSet()
	}
	answered, ghosts := false, true
	var servers []string
	for _, s := range t.Servers {
		said, ok := l.state(s)
		servers, answered = append(servers, said), answered || ok
		ghosts = ghosts && s.Kind == description.ServerKindRSGhost
	}
	slices.Sort(servers)
	list := strings.Join(servers, "; ")
	if wrong := l.otherSet(); t.Kind == description.TopologyKindSingle && !answered && wrong != noServers {
		return wrong
	}
	if wrong := l.otherSet(t.Servers...); !answered && wrong != noServers {
		return wrong + "; " + list // The driver goes on looking for those that haven't answered.
	}
	if ghosts {
		return "no primary: starting, or rs.initiate() wasn't called: " + list
	}
	if answered {
		return "no primary: an election? " + list
	}
	return "no server found: " + list
}

// kinds say what a member of a replica set is.
var kinds = map[description.ServerKind]string{
	description.ServerKindRSPrimary:   "the primary",
	description.ServerKindRSSecondary: "a secondary",
	description.ServerKindRSArbiter:   "an arbiter",
	description.ServerKindRSMember:    "a member that can't serve now",
	description.ServerKindRSGhost:     "not in a replica set yet",
	description.ServerKindStandalone:  "a standalone server",
	description.ServerKindMongos:      "a mongos",
}

// state says what a server is, or why that isn't known; answered is false then.
func (l *login) state(s description.Server) (text string, answered bool) {
	if kind, ok := kinds[s.Kind]; ok {
		return fmt.Sprintf("%s is %s", s.Addr, kind), true
	}
	if s.LastError != nil {
		text = fmt.Sprintf("%s: %v", s.Addr, root(s.LastError))
		if !l.names(s.Addr) {
			text += " (the name is from the replica set's configuration)"
		}
		return text, false
	}
	return fmt.Sprintf("%s: no answer yet", s.Addr), false
}

// names reports that the URI, or its SRV record, names a server. The driver leaves these names for
// those that the replica set's members tell:
// https://github.com/mongodb/specifications/blob/master/source/server-discovery-and-monitoring/server-discovery-and-monitoring.md#clients-use-the-hostnames-listed-in-the-replica-set-config-not-the-seed-list
func (l *login) names(server driveraddress.Address) bool {
	return len(l.hosts) == 0 || slices.ContainsFunc(l.hosts, func(h string) bool { return driveraddress.Address(h).String() == server.String() })
}

// root is what happened to a connection, without the operation and the address.
func root(err error) error {
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[topology.ConnectionError](err); ok && e.Wrapped != nil {
		return e.Wrapped
	}
	return err
}

const noServers = "no server found"

// otherSet says that the servers are in another replica set than the URI says: the driver
// leaves them out, whatever they answer. It hasn't left out those that are still known.
func (l *login) otherSet(known ...description.Server) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var others []string
	for server, name := range l.sets {
		isKnown := slices.ContainsFunc(known, func(s description.Server) bool { return s.Addr.String() == driveraddress.Address(server).String() })
		switch {
		case l.replicaSet == "" || name == l.replicaSet || isKnown:
		case name == "":
			others = append(others, fmt.Sprintf("%s is in no replica set, and the URI says replicaSet=%s: leave that out", server, l.replicaSet))
		default:
			others = append(others, fmt.Sprintf("%s is in the replica set %s, and the URI says replicaSet=%s", server, name, l.replicaSet))
		}
	}
	slices.Sort(others)
	return cmp.Or(strings.Join(others, "; "), noServers)
}
