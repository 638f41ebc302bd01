// Package page serves a page about the worker types of a store, and the API that it is made of: JSON of the same walk of
// a ledger as that of the commands.
//
// Viewers cost a store nothing each: what they look at is a topic, all who look at the same share its looks, and a topic
// that nobody looks at isn't looked at. A look takes in what has been appended since the last one (see tails).
//
// Whoever may ask is decided by [Access]: by the token, by what a proxy says, or by nothing but that the request comes from
// this machine and names it. A page that another site shows in the same browser may do none of that.
package page
