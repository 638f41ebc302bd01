package mongo

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// What the driver says in errors that have no public type or value. A test provokes each of them.
const (
	saidSelection = "server selection error: "
	saidNotSent   = "operation not sent to server, as Timeout would be exceeded"
	saidLogin     = "auth error: "
)

// isSelection reports that the driver found no server that could be used.
func isSelection(err error) bool { return strings.Contains(err.Error(), saidSelection) }

// isLogin reports that an error is that of a login, which comes before the operation.
func isLogin(err error) bool { return strings.Contains(err.Error(), saidLogin) }

// message is the text of a driver's error: what went wrong, without the command, its
// session, cluster times and the driver's picture of the deployment. Those are its detail.
func (l *login) message(err error) string {
	text := err.Error()
	if before, picture, selecting := strings.Cut(text, saidSelection); selecting {
		why, _ := l.noServer(picture)
		if l.encryption != nil {
			return l.encryption.Explain(errors.New(before + why)).Error()
		}
		return before + why
	}
	if said, denied := loginDenied(err); denied {
		return l.loginFailed(said)
	}
	if e, ok := errors.AsType[mongo.CommandError](err); ok {
		return strings.Replace(text, e.Error(), l.answer(int(e.Code), e.Message, plainConnection(e.Error())), 1)
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

// deniedLogin matches what the driver says of a login that was denied: to the operation that tried it, and to those that
// wanted a connection just after it. The server's name for its code is in the text.
var deniedLogin = regexp.MustCompile(`(?s)\b` + saidLogin + `.*\((AuthenticationFailed|UserNotFound|AtlasError)\) (.*)`)

// loginDenied returns what the server said when it denied a login.
func loginDenied(err error) (said string, denied bool) {
	m := deniedLogin.FindStringSubmatch(err.Error())
	if m == nil || m[1] == "AtlasError" && !atlasDenies.MatchString(m[2]) {
		return "", false
	}
	return m[2], true
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

// answer is the text of a server's reply, or otherwise.
func (l *login) answer(code int, said, otherwise string) string {
	switch {
	case code == codeUnauthorized, code == codeAtlasError && refusedAction.MatchString(said):
		return l.unauthorized(said)
	case slices.Contains(notPrimaryCodes, code):
		return "no primary: an election? (" + said + ")"
	}
	return otherwise
}

// write is the text of a reply to a write that was refused, or not confirmed. Of a record there is
// one write, and the details of its error repeat the document.
func (l *login) write(e mongo.WriteException) string {
	var said []string
	for _, w := range e.WriteErrors {
		said = append(said, l.answer(w.Code, w.Message, w.Message))
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
	if m := refusedAction.FindStringSubmatch(said); m != nil {
		return fmt.Sprintf("not authorized: %s on %s%s", m[1], m[2], l.who())
	}
	m := refusedCommand.FindStringSubmatch(said)
	if m == nil {
		return said + l.who()
	}
	action, on := cmp.Or(actions[m[2]], m[2]), m[1]+"."+m[3]
	switch {
	case strings.Contains(said, "$changeStream"):
		action = "changeStream"
	case action == "listCollections":
		on = m[1]
	}
	return fmt.Sprintf("not authorized: %s on %s%s", action, strings.TrimSuffix(on, "."), l.who())
}
