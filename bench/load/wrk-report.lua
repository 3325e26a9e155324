-- Sends a body if there is one, or requests many hosts in turn, and prints the results as a line of JSON after the output of wrk.
function init(args)
  if args[1] == 'body' then
    wrk.method = 'POST'
    wrk.body = args[2]
  elseif args[1] == 'names' then
    requestInTurn(tonumber(args[2]))
  end
end

-- A step that shares no factor with the number of hosts, so that neighbors in the order of creation are not requested one after another.
local STEP = 7919

function requestInTurn(count)
  local requests, at = {}, 0
  for number = 0, count - 1 do
    requests[number] = wrk.format(nil, nil, { Host = 't' .. number .. '.localhost' })
  end
  function request()
    at = (at + STEP) % count
    return requests[at]
  end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nreport {"requests":%d,"bytes":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.requests, summary.bytes, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
