-- What wrk found, as one line of JSON behind its own words: statuses are those over 399.
function done(summary)
  local errors = summary.errors
  io.write(string.format(
    '\nreport {"requests":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\n',
    summary.requests, errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
