-- KEYS: a ledger. ARGV: seq, the largest seq, how many.
-- Deletes the oldest records below a seq, but never the newest.
local before, i = tonumber(ARGV[1]), 0
while true do
  local head = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[2], 1, 'WITHSCORES', 'LIMIT', i, 1)
  if not head[2] then
    return 0
  end
  local seq = tonumber(head[2])
  before = math.min(before, seq)
  if seq == math.floor(seq) then
    break
  end
  i = i + 1
end
local below = '(' .. string.format('%.17g', before)
local n = math.min(redis.call('ZCOUNT', KEYS[1], 1, below), tonumber(ARGV[3]))
if n == 0 then
  return 0
end
local first = redis.call('ZCOUNT', KEYS[1], '-inf', '(1')
return redis.call('ZREMRANGEBYRANK', KEYS[1], first, first + n - 1)
