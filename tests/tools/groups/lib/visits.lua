-- What wrk asks for, and what it found as one line of JSON behind its own words.
local paths = { "/small", "/slow", "/small", "/drip" }
local turn = 0

function request()
  turn = turn % #paths + 1
  return wrk.format("GET", paths[turn])
end

function done(summary)
  local errors = summary.errors
  io.write(string.format(
    '\nreport {"requests":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\n',
    summary.requests, errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
