import { expect, it } from 'vitest';
import { type CurlSource, curlCommand } from './presented-request.ts';

const NO_BODY = { bytes: 0, text: null, is_whole: true };
const visit: CurlSource = {
  method: 'GET',
  origin: 'https://web.test/',
  path: '/',
  headers: [['Host', 'a']],
  body: NO_BODY,
};

it('a GET without headers becomes a plain curl command', () => {
  expect(curlCommand(visit)).toBe('curl https://web.test/');
  expect(curlCommand({ ...visit, method: 'HEAD' })).toBe('curl https://web.test/ \\\n  --head');
});

it('the curl command repeats method, headers and body with shell quoting, without headers that curl or the edge adds', () => {
  const command = curlCommand({
    method: 'PUT',
    origin: 'http://web.localhost:8000',
    path: "/it's?a=1&token=[redacted]",
    headers: [
      ['Host', 'web.localhost:8000'],
      ['X-Forwarded-For', '10.0.0.1'],
      ['Accept-Encoding', 'gzip'],
      ['Authorization', '[redacted]'],
      ['Content-Encoding', 'gzip'],
    ],
    body: { bytes: 7, text: "it's $x", is_whole: true },
  });
  expect(command.split(' \\\n  ')).toEqual([
    "curl 'http://web.localhost:8000/it'\\''s?a=1&token=[redacted]'",
    '--globoff',
    '-X PUT',
    '--compressed',
    "-H 'Authorization: [redacted]'",
    "--data-raw 'it'\\''s $x'",
  ]);
});

it('a body that is binary, incomplete or unsafe for a terminal is read from a file', () => {
  const post = { ...visit, method: 'POST' };
  for (const body of [
    { bytes: 3, text: null, is_whole: true },
    { bytes: 20_000, text: 'x', is_whole: false },
    // The body contains the escape sequence for the end of a bracketed paste in a terminal.
    { bytes: 9, text: "'\x1b[201~\n", is_whole: true },
  ]) {
    expect(curlCommand({ ...post, body })).toBe('curl https://web.test/ \\\n  --data-binary @body.bin');
  }
});

it('the curl command keeps the path unchanged and sends a header with an empty value', () => {
  const command = curlCommand({ ...visit, path: '/{a,b}/../c', headers: [['X-Empty', '']] });
  expect(command.split(' \\\n  ')).toEqual([
    "curl 'https://web.test/{a,b}/../c'",
    '--globoff',
    '--path-as-is',
    "-H 'X-Empty;'",
  ]);
});
