package postgres

import (
	"regexp"
	"strings"
)

// The server looks for an operator, a function or a type without a schema along the search_path, which a role or a database
// may set to schemas in which anybody has made others of the same name. So each is named by the schema of the server's own.
// What else a statement names is a keyword, or has its schema.
var (
	called    = regexp.MustCompile(`\b[a-z_]+\(`)
	operator  = regexp.MustCompile(`(\s)(=|<>|<=|>=|<|>|\|\||->>|\*|-) `)
	cataloged = regexp.MustCompile(`(FROM|JOIN|,) (pg_[a-z_]+)`)
	typed     = regexp.MustCompile(`::(json|oid|regclass|text)\b`)
)

// keywords stand before a bracket, and are no functions.
var keywords = map[string]bool{"coalesce(": true, "extract(": true}

// catalogued is a statement in which the server's own functions, operators, relations and types have their schema. It is
// written with blanks around each operator, none between a function and its arguments, and keywords in capitals. Operators have
// one precedence then, from left to right. What makes the server look for one by itself it must not have: IN, BETWEEN, LIKE
// and CASE x WHEN.
func catalogued(text string) string {
	text = cataloged.ReplaceAllString(text, "$1 pg_catalog.$2")
	var b strings.Builder
	last := 0
	for _, at := range called.FindAllStringIndex(text, -1) {
		if !keywords[text[at[0]:at[1]]] && (at[0] == 0 || text[at[0]-1] != '.') {
			b.WriteString(text[last:at[0]] + "pg_catalog.")
			last = at[0]
		}
	}
	b.WriteString(text[last:])
	// Twice, because a blank between two of them belongs to the first.
	text = operator.ReplaceAllString(operator.ReplaceAllString(b.String(), "${1}OPERATOR(pg_catalog.$2) "), "${1}OPERATOR(pg_catalog.$2) ")
	return typed.ReplaceAllString(text, "::pg_catalog.$1")
}

// isOneOf is the condition that a column has one of some values.
func isOneOf(name string, values ...string) string {
	return "(" + name + " = '" + strings.Join(values, "' OR "+name+" = '") + "')"
}
