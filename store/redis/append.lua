-- KEYS: a ledger, the set of worker types. ARGV: seq, document, worker type, channel or nothing.
-- Stores the record unless there is one with its seq. Whatever may fail comes before the record is stored.
local now = redis.call('TIME')
if redis.call('PTTL', KEYS[1]) >= 0 then
  return {'expires', now[1], now[2]}
end
if redis.call('ZCOUNT', KEYS[1], ARGV[1], ARGV[1]) > 0 then
  return {'exists', now[1], now[2]}
end
redis.call('ZADD', KEYS[2], 0, ARGV[3])
if redis.call('ZADD', KEYS[1], 'NX', ARGV[1], ARGV[2]) ~= 1 then
  return {'elsewhere', now[1], now[2]}
end
if ARGV[4] ~= '' then
  redis.pcall('PUBLISH', ARGV[4], ARGV[3])
end
return {'stored', now[1], now[2]}
