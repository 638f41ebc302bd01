-- KEYS: a ledger, the set of worker types. ARGV: seq, document, worker type, channel or nothing; and, if the record below must
-- be there, its seq, claim, kind and instance.
-- Stores the record unless there is one with its seq. Whatever may fail comes before the record is stored.
if redis.call('PTTL', KEYS[1]) >= 0 then
  return 'expires'
end
-- The newest two up to the seq, so that one that has it comes first.
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', 0, 2)
if found[2] and tonumber(found[2]) == tonumber(ARGV[1]) then
  return 'exists'
end
if ARGV[5] then
  local seq = tonumber(ARGV[5])
  if found[2] and tonumber(found[2]) > seq then -- another program's, between two Seqs
    found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[5], ARGV[5], 'WITHSCORES', 'LIMIT', 0, 2)
  end
  if not found[2] or tonumber(found[2]) ~= seq or found[4] and tonumber(found[4]) == seq or #found[1] > tonumber(ARGV[9]) then
    return 'back'
  end
  local read, below = pcall(cjson.decode, found[1])
  if not read or type(below) ~= 'table' or below.claim ~= ARGV[6] or below.kind ~= ARGV[7] or below.instanceId ~= ARGV[8] then
    return 'back'
  end
end
-- The set has the worker type since its first record, unless somebody has removed it.
if not found[2] or tonumber(ARGV[1]) % 32 == 0 then
  redis.call('ZADD', KEYS[2], 0, ARGV[3])
end
if redis.call('ZADD', KEYS[1], 'NX', ARGV[1], ARGV[2]) ~= 1 then
  return 'elsewhere'
end
if ARGV[4] ~= '' then
  redis.pcall('PUBLISH', ARGV[4], ARGV[3])
end
return 'stored'
