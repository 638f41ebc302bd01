// Package httpfence carries fencing tokens over HTTP, and refuses stale ones.
//
// A client sends them with [Transport], and [Refused] makes an error of the server's
// refusal:
//
//	client := &http.Client{Transport: &httpfence.Transport{Name: "invoices", Token: lease.Token}}
//	response, err := client.Do(request)
//	if err == nil {
//		err = httpfence.Refused(response)
//	}
//
// A server wraps its handlers in [Middleware]. It answers 412 to a request without a
// token, 400 to one with an invalid token, 409 to a stale one, and 503 if the fence can't
// be asked. GET, HEAD, OPTIONS and TRACE are let through as they are.
//
// # What is guaranteed
//
// A request that comes after a newer token was seen is refused. That alone isn't enough:
// the middleware checks before the handler runs, so a handler may check, pause, and write
// after a newer holder has written. To be safe, the handler's own write must check again,
// atomically. [FromContext] has the name and the token for that:
//
//	name, token, _ := httpfence.FromContext(r.Context())
//	err := sqlfence.Do(r.Context(), db, sqlfence.PostgreSQL, name, token, write)
//
// The token is a number that anybody can make up, not a credential: authenticate clients,
// too, and let none choose a fence that isn't its own, by [Options].
package httpfence
