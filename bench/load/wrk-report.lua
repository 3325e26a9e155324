-- A body to send, where one is given, and what wrk found, as one line of JSON behind its own words.
function init(args)
  if args[1] == nil then return end
  wrk.method = 'POST'
  wrk.body = args[1]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nreport {"requests":%d,"bytes":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.requests, summary.bytes, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
