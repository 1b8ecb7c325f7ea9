"""What the server runs, in one go each: Redis lets nothing else happen while a script does.

``BEGIN`` makes a new epoch. ``COMMIT`` writes one piece of a batch, and with its last piece the batch's
number. It takes epoch, last batch, number, version, time to live, how long a deletion is remembered and under
which name, and positions and clock with the last piece; then the values, nothing for a deletion. Invariant: a
script that finds another epoch, a number that is there, or fewer batches than this runner has committed
writes nothing; and no row takes the place of one with a greater version, nor of a deletion that is newer.
"""

from __future__ import annotations

BEGIN = """
local batch, key = unpack(redis.call('HMGET', KEYS[1], 'batch', 'key'))
if not batch then
  redis.call('HSET', KEYS[1], 'batch', '-1', 'key', ARGV[1], 'version', ARGV[2])
  batch, key = '-1', ARGV[1]
end
if key ~= ARGV[1] then return {0, 0, key} end
return {redis.call('HINCRBY', KEYS[1], 'epoch', 1), tonumber(batch), key}
"""

COMMIT = """
local epoch, batch = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'batch'))
if not epoch then return 'lost' end
if epoch ~= ARGV[1] then return 'fenced' end
if tonumber(batch) >= tonumber(ARGV[3]) then return 'there' end
if tonumber(batch) < tonumber(ARGV[2]) then return 'lost' end
local version, ttl = tonumber(ARGV[4]), tonumber(ARGV[5])
for i = 2, #KEYS do
  local gone = ARGV[7] .. KEYS[i]
  local head = redis.call('GETRANGE', KEYS[i], 0, 40)
  local there = tonumber(string.match(head, '^{"_version":(%d+)') or 0)
  local deleted = tonumber(redis.call('GET', gone) or 0)
  local value = ARGV[7 + i]
  if version >= there and version >= deleted then
    if value == '' then
      redis.call('DEL', KEYS[i])
      redis.call('SET', gone, ARGV[4], 'PX', ARGV[6])
    else
      if ttl > 0 then redis.call('SET', KEYS[i], value, 'PX', ttl) else redis.call('SET', KEYS[i], value) end
      if deleted > 0 then redis.call('DEL', gone) end
    end
  end
end
if ARGV[8] == '' then return 'part' end
redis.call('HSET', KEYS[1], 'batch', ARGV[3], 'progress', ARGV[8])
return 'whole'
"""
