// Package sqldb is what the stores in SQL databases have in common: their URIs and options, their connections and the application's,
// what is known of their servers, and one table of checks, from which follow what is refused, what is warned of, and what an
// examination finds. A store adds its [Parts], and package storekit the statements.
package sqldb
