import { describe, expect, it } from 'vitest';
import { editedHead, type RequestEdit } from './edited-request.ts';
import { putBackInBody, putBackInUrl } from './put-back.ts';
import { redactBody, redactJson } from './redact.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';

const headOf = (...lines: string[]): RequestHead => {
  const head = parseRequestHead(`${lines.join('\r\n')}\r\n\r\n`);
  if (head.kind === 'problem') throw new Error(head.reason);
  return head;
};

const STORED = headOf(
  'POST /hook?token=s3cret&n=1&token=other HTTP/1.1',
  'Host: web.edge.test',
  'Authorization: Bearer hunter2',
  'Cookie: a=1',
  'Cookie: b=2',
  'Referer: https://a.example/?code=c0de&x=1',
  'Content-Type: application/json',
  'Content-Encoding: gzip',
  'Transfer-Encoding: chunked',
  'Connection: keep-alive, X-Hop',
  'TE: trailers',
  'X-Hop: 1',
);

const edited = (edit: RequestEdit, body = { bytes: 3, isNew: false, hasSecrets: false }): string => {
  const head = editedHead(STORED, edit, body);
  return head.kind === 'problem' ? head.reason : head.text;
};

const linesOf = (text: string): string[] => text.split('\r\n').slice(0, -2);

describe('an edited request', () => {
  it('equals the stored request without edits, with a known length and without headers of the old connection', () => {
    expect(linesOf(edited({}))).toEqual([
      'POST /hook?token=s3cret&n=1&token=other HTTP/1.1',
      'Host: web.edge.test',
      'Authorization: Bearer hunter2',
      'Cookie: a=1',
      'Cookie: b=2',
      'Referer: https://a.example/?code=c0de&x=1',
      'Content-Type: application/json',
      'Content-Encoding: gzip',
      'Content-Length: 3',
    ]);
  });

  it('keeps the stored value for each [redacted] mark in the path, in headers and in joined fields', () => {
    const text = edited(
      {
        method: 'PUT',
        path: '/other?n=2&token=[redacted]&token=[redacted]',
        headers: [
          ['authorization', '[redacted]'],
          ['cookie', '[redacted], [redacted]'],
          ['referer', 'https://a.example/?code=[redacted]&x=2'],
          ['x-new', '1'],
          ['content-length', '99'],
          ['content-encoding', 'gzip'],
        ],
      },
      { bytes: 5, isNew: true, hasSecrets: false },
    );
    expect(linesOf(text)).toEqual([
      'PUT /other?n=2&token=s3cret&token=other HTTP/1.1',
      'Host: web.edge.test',
      'authorization: Bearer hunter2',
      'cookie: a=1',
      'cookie: b=2',
      'referer: https://a.example/?code=c0de&x=2',
      'x-new: 1',
      'Content-Length: 5',
    ]);
  });

  it('has Content-Length: 0 for an empty body where it is customary', () => {
    const none = { bytes: 0, isNew: true, hasSecrets: false };
    expect(edited({}, none)).toContain('Content-Length: 0\r\n');
    expect(edited({ method: 'GET' }, none)).not.toContain('Content-Length');
    expect(edited({ headers: [['content-type', 'text/plain; charset=latin1; x=y']] }, none)).toContain(
      'content-type: text/plain; charset=utf-8; x=y\r\n',
    );
    expect(edited({ headers: [['Host', 'other.test']] }, none)).toMatch(/^POST [^\r]*\r\nHost: other\.test\r\n/);
  });

  it.each<[string, RequestEdit, RegExp]>([
    ['an invalid method', { method: 'GET /' }, /^method: /],
    ['CONNECT', { method: 'CONNECT' }, /CONNECT/],
    ['a URL as the path', { path: 'http://a/' }, /^path: must start with \//],
    ['a blank in a path', { path: '/a b' }, /^path: must start/],
    ['a line break in a path', { path: '/a\r\nX: y' }, /^path: must start/],
    ['a mark for a parameter that did not exist', { path: '/?key=[redacted]' }, /^path: \[redacted\]/],
    ['one mark too many', { path: '/?token=[redacted]&token=[redacted]&token=[redacted]' }, /^path: \[redacted\]/],
    ['a mark outside of a value', { path: '/[redacted]' }, /^path: \[redacted\]/],
    ['an invalid header name', { headers: [['a b', 'c']] }, /^headers: 'a b'/],
    ['a line break in a value', { headers: [['a', 'b\r\nc: d']] }, /^headers: the value of a/],
    ['a character beyond latin1', { headers: [['a', '€']] }, /^headers: the value of a/],
    ['a mark for a header that did not exist', { headers: [['x-api-key', '[redacted]']] }, /^headers: x-api-key: /],
    ['a mark within a value', { headers: [['authorization', 'Bearer [redacted]']] }, /^headers: authorization: /],
    ['a mark in a header that is shown', { headers: [['x-new', 'a [redacted]']] }, /^headers: x-new: /],
    ['an invalid host', { headers: [['Host', 'a b']] }, /Host/],
    [
      'two hosts',
      {
        headers: [
          ['Host', 'a'],
          ['host', 'b'],
        ],
      },
      /Host is repeated/,
    ],
    [
      'a head that is too large',
      { headers: Array.from({ length: 5 }, () => ['a', 'x'.repeat(8000)] as const) },
      /32768 bytes/,
    ],
  ])('is refused for %s', (_, edit, reason) => {
    expect(edited(edit)).toMatch(reason);
  });
});

describe('redacted secrets are restored', () => {
  const JSON_TYPE = 'application/json';
  const stored = '{"id":1,"token":"s3cret","in":{"password":["a","b"]},"api_key":42,"token":"other"}';
  const shown = redactJson(JSON_TYPE, redactBody(JSON_TYPE, stored));

  it('in JSON by their names, for any other changes', () => {
    expect(shown).not.toContain('s3cret');
    expect(putBackInBody(JSON_TYPE, shown, stored)).toEqual({ kind: 'text', text: stored });
    const moved = '{"api_key": "[redacted]", "id": 2, "token": "mine"}';
    expect(putBackInBody(JSON_TYPE, moved, stored)).toEqual({
      kind: 'text',
      text: '{"api_key": 42, "id": 2, "token": "mine"}',
    });
  });

  it('in URL-encoded and multipart forms', () => {
    const form = 'application/x-www-form-urlencoded';
    expect(putBackInBody(form, 'b=3&password=[redacted]', 'password=p%20w&b=2')).toMatchObject({
      text: 'b=3&password=p%20w',
    });
    const type = 'multipart/form-data; boundary=XX';
    const parts = (password: string, user: string): string =>
      `--XX\r\nContent-Disposition: form-data; name="password"\r\n\r\n${password}\r\n--XX\r\nContent-Disposition: form-data; name="user"\r\n\r\n${user}\r\n--XX--\r\n`;
    const sent = parts('two\r\nlines', 'a');
    expect(putBackInBody(type, redactBody(type, sent).replace('\r\na\r\n', '\r\nb\r\n'), sent)).toEqual({
      kind: 'text',
      text: parts('two\r\nlines', 'b'),
    });
  });

  it('unless a secret has no end in the stored text, since it could reveal the secrets behind it', () => {
    const cut = '{"token":"s3cret","password":"no end';
    expect(putBackInBody(JSON_TYPE, '{"password":"[redacted]","token":"[redacted]"}', cut)).toEqual({
      kind: 'problem',
    });
    expect(putBackInBody(JSON_TYPE, '{"token":"[redacted]","n":1}', cut)).toMatchObject({ kind: 'text' });
  });

  it('or else the leftover mark is an error, unless the stored text had its own mark', () => {
    expect(putBackInBody(JSON_TYPE, '{"secret":"[redacted]"}', stored)).toEqual({ kind: 'problem' });
    expect(putBackInBody('text/plain', 'a [redacted]', 'b')).toEqual({ kind: 'problem' });
    expect(putBackInBody('text/plain', 'a [redacted]', 'b [redacted]')).toEqual({ kind: 'text', text: 'a [redacted]' });
    expect(putBackInUrl('/a?x=1', '/')).toEqual({ kind: 'text', text: '/a?x=1' });
  });
});
