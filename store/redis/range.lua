-- KEYS: a ledger. ARGV: ZRANGEBYSCORE or ZREVRANGEBYSCORE, from, to, how many, the largest document, the most bytes,
-- and a seq above which it is to look, too, or nothing.
-- Gives the time, the time to live, a score above that seq or nothing, whether there is more, and scores and documents.
-- A document that is too large is left out. It stops after the record that makes it too many bytes.
local now = redis.call('TIME')
local above = ''
if ARGV[7] ~= '' then
  local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '(' .. ARGV[7], 'WITHSCORES', 'LIMIT', 0, 1)
  above = found[2] or ''
end
local rows, bytes, wanted, n, more = {}, 0, tonumber(ARGV[4]), 0, 0
while n < wanted and more == 0 do
  local some = math.min(wanted - n, 16)
  local found = redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[3], 'WITHSCORES', 'LIMIT', n, some)
  for i = 1, #found, 2 do
    local document = found[i]
    if #document > tonumber(ARGV[5]) then
      document = ''
    end
    rows[#rows + 1] = found[i + 1]
    rows[#rows + 1] = document
    bytes = bytes + #document
    n = n + 1
    if bytes > tonumber(ARGV[6]) then
      more = 1
      break
    end
  end
  if #found < 2 * some then
    break
  end
end
if n == wanted then
  more = 1
end
-- Another program may have stored two documents under one seq.
local twins = 0
if n > 0 then
  local last = rows[2 * n - 1]
  twins = redis.call('ZCOUNT', KEYS[1], last, last)
end
return {now[1], now[2], redis.call('PTTL', KEYS[1]), above, more, twins, rows}
