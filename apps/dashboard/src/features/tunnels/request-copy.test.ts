import { expect, it } from 'vitest';
import { curlCommand, headerLines } from './request-copy.ts';

const request = {
  method: 'GET',
  path: '/',
  request_headers: { host: 'web.test' },
  request_body: null,
  request_size: 0,
  replayable: true,
};

it('a plain GET request is copied as a plain curl command', () => {
  expect(curlCommand(request, 'https://web.test/')).toBe('curl https://web.test/');
  expect(curlCommand({ ...request, method: 'HEAD' }, 'https://web.test')).toContain('--head');
});

it('a copied curl command has method, headers and body in shell quotes, without headers that curl sets', () => {
  const command = curlCommand(
    {
      ...request,
      method: 'PUT',
      path: "/it's?a=1&token=[redacted]",
      request_headers: {
        host: 'web.test',
        'content-length': '17',
        'accept-encoding': 'gzip',
        'content-type': 'application/json',
        'content-encoding': 'gzip',
        authorization: '[redacted]',
      },
      request_body: '{"it\'s":"$HOME"}\n',
      request_size: 17,
    },
    'http://web.localhost:8000',
  );
  expect(command.split(' \\\n  ')).toEqual([
    "curl 'http://web.localhost:8000/it'\\''s?a=1&token=[redacted]'",
    '--globoff',
    '-X PUT',
    '--compressed',
    "-H 'content-type: application/json'",
    "-H 'authorization: [redacted]'",
    `--data-raw '{"it'\\''s":"$HOME"}\n'`,
  ]);
});

it('a body that is not complete text is copied as --data-binary with a file', () => {
  expect(curlCommand({ ...request, method: 'POST', request_size: 9 }, 'http://a')).toBe(
    'curl http://a/ \\\n  --data-binary @body.bin',
  );
  const cut = { ...request, method: 'POST', request_size: 20_000, request_body: 'x', replayable: false };
  expect(curlCommand(cut, 'http://a')).toContain('@body.bin');
  // This escape sequence would end a bracketed paste in a terminal.
  const escaping = { ...request, method: 'POST', request_size: 9, request_body: "'\x1b[201~\n" };
  expect(curlCommand(escaping, 'http://a')).toContain('@body.bin');
});

it('a copied curl command keeps an unusual path and an empty header', () => {
  const odd = { ...request, path: '/{a,b}/../c', request_headers: { 'x-empty': '' } };
  expect(curlCommand(odd, 'http://a').split(' \\\n  ')).toEqual([
    "curl 'http://a/{a,b}/../c'",
    '--globoff',
    '--path-as-is',
    "-H 'x-empty;'",
  ]);
});

it('headers are copied, a line for each', () => {
  expect(headerLines({ a: '1', b: '2, 3' })).toBe('a: 1\nb: 2, 3');
});
