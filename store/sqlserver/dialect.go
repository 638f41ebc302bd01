//go:build sqlserver

package sqlserver

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// Parts of the statements.
const (
	// sessionServer is the key of what a session has noted of its server.
	sessionServer = `slotlease_server`
	// guardText is what the guard says, with the number codeGuard.
	guardText = `slotlease: the session was not set up on this server, or the database takes no writes here any more`
	// guard keeps a statement from a session that isn't set up, as behind a proxy that shares sessions, from a database
	// that takes no writes, as on a readable secondary, and from a transaction that nobody commits. It declares @server.
	guard = `DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'` + sessionServer + `'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'` + guardText + `', 1;
END;
`
	// clockNow is the server's clock in µs, as of the start of the statement.
	clockNow = `DATEDIFF_BIG(MICROSECOND, CONVERT(datetime2(7), '19700101', 112), SYSUTCDATETIME())`
)

// quoted is the name of a table.
func quoted(schema, table string) string { return "[" + schema + "].[" + table + "]" }

// nameOf are the bytes of a name, which comes as a parameter of the type nvarchar, and is ASCII.
func nameOf(parameter string) string {
	return "CONVERT(varbinary(255), CONVERT(varchar(255), " + parameter + "))"
}

// upTo is a document of so many bytes at most, and else NULL. It is converted, lest a server guess another type than its column's.
func upTo(bytes int, and string) string {
	return fmt.Sprintf("CONVERT(nvarchar(max), CASE WHEN DATALENGTH(document) <= %d%s THEN document END)", bytes, and)
}

// filled is a statement with its parts. NAME(@p1) are the bytes of a name. The server takes names for one that differ in trailing zeros
// alone, which no worker type has: a record under another's has no document.
func (l *Ledger) filled(text string) string {
	a := &l.address
	return strings.NewReplacer(
		"LEDGERKEY", "[pk_"+a.Table+"]",
		"ROSTERKEY", "[pk_"+a.Table+sqldb.RosterSuffix+"]",
		"LEDGER", quoted(a.Schema, a.Table),
		"ROSTER", quoted(a.Schema, a.Table+sqldb.RosterSuffix),
		"PRESENCE", upTo(2*storekit.MaxPresence, ""),
		"DOCUMENT", upTo(2*storekit.MaxDocument, " AND DATALENGTH(worker_type) = DATALENGTH("+nameOf("@p1")+")"),
		"NAME(@p1)", nameOf("@p1"),
		"NAME(@p2)", nameOf("@p2"),
		// A number of more than 31 bits is a decimal, to which each Seq would be converted.
		"MAXSEQ", fmt.Sprintf("CONVERT(bigint, %d)", int64(store.MaxSeq)),
		"CLOCK", clockNow, "SERVER", "@server",
	).Replace(text)
}

// dialect are the statements of the ledger's tables. Reads take no hint: with READ_COMMITTED_SNAPSHOT they see all that
// was committed when they began, and lock nothing; without it they wait for rows that are being written.
func (l *Ledger) dialect() sqldb.Dialect {
	of := func(text string) sqldb.Statement { return sqldb.Statement{Text: guard + l.filled(text)} }
	return sqldb.Dialect{
		Get: of(`SELECT DOCUMENT FROM LEDGER WHERE worker_type = NAME(@p1) AND seq = @p2;`),
		Tail: of(`SELECT CLOCK, SERVER, r.seq, r.document FROM (SELECT 1 AS one) AS c LEFT JOIN (
	SELECT a.seq, DOCUMENT AS document FROM (SELECT TOP (@p2) worker_type, seq, document FROM LEDGER WHERE worker_type = NAME(@p1) AND seq BETWEEN 1 AND MAXSEQ ORDER BY seq DESC) AS a
	UNION ALL SELECT b.seq, CONVERT(nvarchar(max), NULL) FROM (SELECT TOP (1) seq FROM LEDGER WHERE worker_type = NAME(@p1) AND seq > MAXSEQ ORDER BY seq) AS b
) AS r ON 1 = 1;`),
		Page: of(`SELECT TOP (@p3) seq, DOCUMENT FROM LEDGER WHERE worker_type = NAME(@p1) AND seq > @p2 AND seq <= MAXSEQ ORDER BY seq;`),
		Trim: of(`WITH oldest AS (SELECT TOP (@p3) worker_type, seq FROM LEDGER WHERE worker_type = NAME(@p1) AND seq < @p2
	AND seq < (SELECT MAX(seq) FROM LEDGER WHERE worker_type = NAME(@p1) AND seq BETWEEN 1 AND MAXSEQ) ORDER BY seq)
DELETE FROM oldest;`),
		// Each name leads to the next one, so that the records between them aren't read.
		WorkerTypes: of(`DECLARE @found TABLE (worker_type varbinary(255) NOT NULL);
DECLARE @at varbinary(255) = (SELECT TOP (1) worker_type FROM LEDGER ORDER BY worker_type);
WHILE @at IS NOT NULL
BEGIN
	INSERT INTO @found (worker_type) VALUES (@at);
	SET @at = (SELECT TOP (1) worker_type FROM LEDGER WHERE worker_type > @at ORDER BY worker_type);
END;
SELECT worker_type FROM @found;`),
		Now: of(`SELECT CLOCK, SERVER;`),
		Attend: of(`MERGE INTO ROSTER WITH (HOLDLOCK) AS old USING (SELECT NAME(@p1) AS worker_type, NAME(@p2) AS id, @p3 AS document) AS new
	ON old.worker_type = new.worker_type AND old.id = new.id
WHEN MATCHED THEN UPDATE SET document = new.document
WHEN NOT MATCHED THEN INSERT (worker_type, id, document) VALUES (new.worker_type, new.id, new.document);`),
		Leave:     of(`DELETE FROM ROSTER WHERE worker_type = NAME(@p1) AND id = NAME(@p2);`),
		Presences: of(`SELECT worker_type, id, PRESENCE FROM ROSTER WHERE @p1 = N'' OR worker_type = NAME(@p1);`),
	}
}

// insertion inserts a record, and then reads it: first come the keys that were stored, then whether what is stored is
// what was given, with the clock. The clause OUTPUT makes the server refuse the statement if the table has triggers
// for inserts (error 334). With after it inserts only if there is a row with the key, which is a conflict, or the record below,
// whose claim, kind and instance are compared byte by byte; what isn't JSON has none.
func (l *Ledger) insertion(after bool) string {
	values := `VALUES (NAME(@p1), @p2, @p3)`
	if after {
		values = `SELECT NAME(@p1), @p2, @p3 WHERE EXISTS (SELECT 1 FROM LEDGER WHERE worker_type = NAME(@p1) AND (seq = @p2 OR seq = @p2 - 1
	AND CASE WHEN ISJSON(document) = 1 AND CONVERT(varbinary(8000), JSON_VALUE(document, '$.claim')) = CONVERT(varbinary(8000), CONVERT(nvarchar(4000), @p4))
		AND CONVERT(varbinary(8000), JSON_VALUE(document, '$.kind')) = CONVERT(varbinary(8000), CONVERT(nvarchar(4000), @p5))
		AND CONVERT(varbinary(8000), JSON_VALUE(document, '$.instanceId')) = CONVERT(varbinary(8000), CONVERT(nvarchar(4000), @p6)) THEN 1 ELSE 0 END = 1))`
	}
	return guard + l.filled(`INSERT INTO LEDGER (worker_type, seq, document) OUTPUT inserted.seq `+values+`;
SELECT CASE WHEN DATALENGTH(document) = DATALENGTH(@p3) AND CONVERT(varbinary(max), document) = CONVERT(varbinary(max), CONVERT(nvarchar(max), @p3)) THEN 1 ELSE 0 END, CLOCK, SERVER
FROM LEDGER WHERE worker_type = NAME(@p1) AND seq = @p2;`)
}

// presence says whether a row has a key.
func (l *Ledger) presence() string {
	return guard + l.filled(`SELECT 1 FROM LEDGER WHERE worker_type = NAME(@p1) AND seq = @p2;`)
}
