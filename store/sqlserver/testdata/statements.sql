-- a new session
SET IMPLICIT_TRANSACTIONS OFF;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET XACT_ABORT ON;
SET NOCOUNT OFF;
SET ANSI_NULLS ON;
SET ANSI_PADDING ON;
SET ANSI_WARNINGS ON;
SET ARITHABORT ON;
SET CONCAT_NULL_YIELDS_NULL ON;
SET QUOTED_IDENTIFIER ON;
SET NUMERIC_ROUNDABORT OFF;
SET ROWCOUNT 0;
SET TEXTSIZE 2147483647;
SET LOCK_TIMEOUT 2000;
SET LANGUAGE us_english;
DECLARE @server nvarchar(300) = COALESCE(CONVERT(nvarchar(128), SERVERPROPERTY('ServerName')), N'a server without a name')
	+ COALESCE(N' since ' + CONVERT(nvarchar(30), (SELECT create_date FROM sys.databases WHERE name = N'tempdb'), 126), N'');
EXEC sys.sp_set_session_context @key = N'slotlease_server', @value = @server;
GO
-- a new session, then
SELECT CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability'));
GO
-- init
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
CREATE TABLE [dbo].[worker_leases] (worker_type varbinary(255) NOT NULL, seq bigint NOT NULL, document nvarchar(max) NOT NULL,
	CONSTRAINT [pk_worker_leases] PRIMARY KEY CLUSTERED (worker_type, seq));
GO
-- init, then
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
CREATE TABLE [dbo].[worker_leases_roster] (worker_type varbinary(255) NOT NULL, id varbinary(255) NOT NULL, document nvarchar(max) NOT NULL,
	CONSTRAINT [pk_worker_leases_roster] PRIMARY KEY CLUSTERED (worker_type, id));
GO
-- init, by an administrator
-- for sqlcmd, in the database jobs
IF OBJECT_ID(N'[dbo].[worker_leases]') IS NULL
CREATE TABLE [dbo].[worker_leases] (worker_type varbinary(255) NOT NULL, seq bigint NOT NULL, document nvarchar(max) NOT NULL,
	CONSTRAINT [pk_worker_leases] PRIMARY KEY CLUSTERED (worker_type, seq));
IF OBJECT_ID(N'[dbo].[worker_leases_roster]') IS NULL
CREATE TABLE [dbo].[worker_leases_roster] (worker_type varbinary(255) NOT NULL, id varbinary(255) NOT NULL, document nvarchar(max) NOT NULL,
	CONSTRAINT [pk_worker_leases_roster] PRIMARY KEY CLUSTERED (worker_type, id));
-- A worker needs these rights and no others. Put its user here, unless this is it.
GRANT SELECT, INSERT, DELETE ON OBJECT::[dbo].[worker_leases] TO [worker];
GRANT SELECT, INSERT, UPDATE, DELETE ON OBJECT::[dbo].[worker_leases_roster] TO [worker];
GO
-- append
DECLARE @p1 nvarchar(63);
DECLARE @p2 bigint;
DECLARE @p3 nvarchar(max);
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
INSERT INTO [dbo].[worker_leases] (worker_type, seq, document) OUTPUT inserted.seq VALUES (CONVERT(varbinary(255), CONVERT(varchar(255), @p1)), @p2, @p3);
SELECT CASE WHEN DATALENGTH(document) = DATALENGTH(@p3) AND CONVERT(varbinary(max), document) = CONVERT(varbinary(max), CONVERT(nvarchar(max), @p3)) THEN 1 ELSE 0 END, DATEDIFF_BIG(MICROSECOND, CONVERT(datetime2(7), '19700101', 112), SYSUTCDATETIME()), @server
FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq = @p2;
GO
-- append above a known record
DECLARE @p1 nvarchar(63);
DECLARE @p2 bigint;
DECLARE @p3 nvarchar(max);
DECLARE @p4 nvarchar(64);
DECLARE @p5 nvarchar(64);
DECLARE @p6 nvarchar(256);
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
INSERT INTO [dbo].[worker_leases] (worker_type, seq, document) OUTPUT inserted.seq SELECT CONVERT(varbinary(255), CONVERT(varchar(255), @p1)), @p2, @p3 WHERE EXISTS (SELECT 1 FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND (seq = @p2 OR seq = @p2 - 1
	AND CASE WHEN ISJSON(document) = 1 AND CONVERT(varbinary(8000), JSON_VALUE(document, '$.claim')) = CONVERT(varbinary(8000), CONVERT(nvarchar(4000), @p4))
		AND CONVERT(varbinary(8000), JSON_VALUE(document, '$.kind')) = CONVERT(varbinary(8000), CONVERT(nvarchar(4000), @p5))
		AND CONVERT(varbinary(8000), JSON_VALUE(document, '$.instanceId')) = CONVERT(varbinary(8000), CONVERT(nvarchar(4000), @p6)) THEN 1 ELSE 0 END = 1));
SELECT CASE WHEN DATALENGTH(document) = DATALENGTH(@p3) AND CONVERT(varbinary(max), document) = CONVERT(varbinary(max), CONVERT(nvarchar(max), @p3)) THEN 1 ELSE 0 END, DATEDIFF_BIG(MICROSECOND, CONVERT(datetime2(7), '19700101', 112), SYSUTCDATETIME()), @server
FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq = @p2;
GO
-- append, after a conflict
DECLARE @p1 nvarchar(63);
DECLARE @p2 bigint;
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
SELECT 1 FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq = @p2;
GO
-- get
DECLARE @p1 nvarchar(63);
DECLARE @p2 bigint;
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
SELECT CONVERT(nvarchar(max), CASE WHEN DATALENGTH(document) <= 16777216 AND DATALENGTH(worker_type) = DATALENGTH(CONVERT(varbinary(255), CONVERT(varchar(255), @p1))) THEN document END) FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq = @p2;
GO
-- tail
DECLARE @p1 nvarchar(63);
DECLARE @p2 bigint;
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
SELECT DATEDIFF_BIG(MICROSECOND, CONVERT(datetime2(7), '19700101', 112), SYSUTCDATETIME()), @server, r.seq, r.document FROM (SELECT 1 AS one) AS c LEFT JOIN (
	SELECT a.seq, CONVERT(nvarchar(max), CASE WHEN DATALENGTH(document) <= 16777216 AND DATALENGTH(worker_type) = DATALENGTH(CONVERT(varbinary(255), CONVERT(varchar(255), @p1))) THEN document END) AS document FROM (SELECT TOP (@p2) worker_type, seq, document FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq BETWEEN 1 AND CONVERT(bigint, 9007199254740990) ORDER BY seq DESC) AS a
	UNION ALL SELECT b.seq, CONVERT(nvarchar(max), NULL) FROM (SELECT TOP (1) seq FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq > CONVERT(bigint, 9007199254740990) ORDER BY seq) AS b
) AS r ON 1 = 1;
GO
-- page
DECLARE @p1 nvarchar(63);
DECLARE @p2 bigint;
DECLARE @p3 bigint;
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
SELECT TOP (@p3) seq, CONVERT(nvarchar(max), CASE WHEN DATALENGTH(document) <= 16777216 AND DATALENGTH(worker_type) = DATALENGTH(CONVERT(varbinary(255), CONVERT(varchar(255), @p1))) THEN document END) FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq > @p2 AND seq <= CONVERT(bigint, 9007199254740990) ORDER BY seq;
GO
-- trim
DECLARE @p1 nvarchar(63);
DECLARE @p2 bigint;
DECLARE @p3 bigint;
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
WITH oldest AS (SELECT TOP (@p3) worker_type, seq FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq < @p2
	AND seq < (SELECT MAX(seq) FROM [dbo].[worker_leases] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND seq BETWEEN 1 AND CONVERT(bigint, 9007199254740990)) ORDER BY seq)
DELETE FROM oldest;
GO
-- worker types
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
DECLARE @found TABLE (worker_type varbinary(255) NOT NULL);
DECLARE @at varbinary(255) = (SELECT TOP (1) worker_type FROM [dbo].[worker_leases] ORDER BY worker_type);
WHILE @at IS NOT NULL
BEGIN
	INSERT INTO @found (worker_type) VALUES (@at);
	SET @at = (SELECT TOP (1) worker_type FROM [dbo].[worker_leases] WHERE worker_type > @at ORDER BY worker_type);
END;
SELECT worker_type FROM @found;
GO
-- now
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
SELECT DATEDIFF_BIG(MICROSECOND, CONVERT(datetime2(7), '19700101', 112), SYSUTCDATETIME()), @server;
GO
-- attend
DECLARE @p1 nvarchar(63);
DECLARE @p2 nvarchar(64);
DECLARE @p3 nvarchar(max);
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
MERGE INTO [dbo].[worker_leases_roster] WITH (HOLDLOCK) AS old USING (SELECT CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AS worker_type, CONVERT(varbinary(255), CONVERT(varchar(255), @p2)) AS id, @p3 AS document) AS new
	ON old.worker_type = new.worker_type AND old.id = new.id
WHEN MATCHED THEN UPDATE SET document = new.document
WHEN NOT MATCHED THEN INSERT (worker_type, id, document) VALUES (new.worker_type, new.id, new.document);
GO
-- leave
DECLARE @p1 nvarchar(63);
DECLARE @p2 nvarchar(64);
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
DELETE FROM [dbo].[worker_leases_roster] WHERE worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1)) AND id = CONVERT(varbinary(255), CONVERT(varchar(255), @p2));
GO
-- presences
DECLARE @p1 nvarchar(63);
DECLARE @server nvarchar(300) = CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server'));
IF @server IS NULL OR @@TRANCOUNT > 0 OR (@@OPTIONS & 2) <> 0 OR COALESCE(CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')), N'') <> N'READ_WRITE'
BEGIN
	THROW 51700, N'slotlease: the session was not set up on this server, or the database takes no writes here any more', 1;
END;
SELECT worker_type, id, CONVERT(nvarchar(max), CASE WHEN DATALENGTH(document) <= 262144 THEN document END) FROM [dbo].[worker_leases_roster] WHERE @p1 = N'' OR worker_type = CONVERT(varbinary(255), CONVERT(varchar(255), @p1));
GO
-- the check: server
SELECT CONVERT(nvarchar(128), SERVERPROPERTY('EngineEdition')) AS edition, CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion')) AS version,
	LEFT(@@VERSION, 300) AS banner, SUSER_SNAME() AS login_name, DB_NAME() AS database_name, CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')) AS updateability,
	CONVERT(nvarchar(1), SERVERPROPERTY('IsClustered')) AS is_clustered, CONVERT(nvarchar(300), SESSION_CONTEXT(N'slotlease_server')) AS server_name;
GO
-- the check: database
SELECT delayed_durability_desc, CONVERT(nvarchar(1), is_read_committed_snapshot_on), page_verify_option_desc, CONVERT(nvarchar(36), group_database_id)
FROM sys.databases WHERE name = DB_NAME();
GO
-- the check: availability group
SELECT r.replica_server_name, r.availability_mode_desc, r.failover_mode_desc, CONVERT(nvarchar(10), g.required_synchronized_secondaries_to_commit)
FROM sys.availability_databases_cluster AS d JOIN sys.availability_groups AS g ON g.group_id = d.group_id JOIN sys.availability_replicas AS r ON r.group_id = d.group_id
WHERE d.group_database_id = CONVERT(uniqueidentifier, '00000000-0000-0000-0000-000000000000');
GO
-- the check: table
SELECT OBJECT_SCHEMA_NAME(o.object_id), o.name, o.type_desc,
	CASE WHEN t.is_memory_optimized = 1 THEN N' memory-optimized' ELSE N'' END + CASE WHEN t.is_external = 1 THEN N' external' ELSE N'' END + CASE WHEN t.is_filetable = 1 THEN N' file' ELSE N'' END
FROM sys.objects AS o LEFT JOIN sys.tables AS t ON t.object_id = o.object_id WHERE o.object_id = OBJECT_ID(N'[dbo].[worker_leases]');
GO
-- the check: columns
SELECT c.name, COALESCE(TYPE_NAME(c.system_type_id), N'another'), CONVERT(nvarchar(10), c.max_length),
	CASE WHEN c.is_computed = 1 THEN N' computed' ELSE N'' END + CASE WHEN c.is_identity = 1 THEN N' identity' ELSE N'' END
	+ CASE WHEN c.is_masked = 1 THEN N' masked' ELSE N'' END + CASE WHEN c.encryption_type IS NOT NULL THEN N' encrypted' ELSE N'' END,
	CASE WHEN c.is_nullable = 0 AND c.default_object_id = 0 AND c.is_computed = 0 AND c.is_identity = 0 AND c.generated_always_type = 0 AND c.system_type_id <> 189 THEN N'1' ELSE N'0' END
FROM sys.columns AS c WHERE c.object_id = OBJECT_ID(N'[dbo].[worker_leases]') ORDER BY c.column_id;
GO
-- the check: unique indexes
SELECT i.name, CONVERT(nvarchar(1), i.is_primary_key), CONVERT(nvarchar(1), i.ignore_dup_key), CONVERT(nvarchar(1), i.is_disabled), COL_NAME(k.object_id, k.column_id)
FROM sys.indexes AS i JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.key_ordinal > 0
WHERE i.object_id = OBJECT_ID(N'[dbo].[worker_leases]') AND i.is_unique = 1 ORDER BY i.index_id, k.key_ordinal;
GO
-- the check: triggers, constraints, policies
SELECT N'trigger', name FROM sys.triggers WHERE parent_id = OBJECT_ID(N'[dbo].[worker_leases]') AND is_disabled = 0
UNION ALL SELECT N'constraint', name FROM sys.check_constraints WHERE parent_object_id = OBJECT_ID(N'[dbo].[worker_leases]') AND is_disabled = 0
UNION ALL SELECT N'constraint', name FROM sys.foreign_keys WHERE parent_object_id = OBJECT_ID(N'[dbo].[worker_leases]') AND is_disabled = 0
UNION ALL SELECT N'policy', p.name FROM sys.security_policies AS p JOIN sys.security_predicates AS s ON s.object_id = p.object_id WHERE s.target_object_id = OBJECT_ID(N'[dbo].[worker_leases]') AND p.is_enabled = 1
ORDER BY 1, 2;
GO
-- the check: a table that is unknown
SELECT TOP (0) seq FROM [dbo].[worker_leases];
GO
-- a right
SELECT CONVERT(nvarchar(1), HAS_PERMS_BY_NAME(N'[dbo].[worker_leases]', N'OBJECT', N'INSERT'));
GO
