import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, piping, type TestIoOptions, typing } from '../io/io.fixture.ts';

const POLICY = `rules:
  - name: office
    match: { address: 10.0.0.0/8 }
    allow: true
  - match: { path: /api/** }
    route: api
  - name: people
    match: { not: { path: /open/** } }
    auth: { basic: { users: { anna: "918273645" } } }
`;

let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
  writeFileSync(join(home.path, 'shop.yml'), POLICY);
});
afterEach(() => home.close());

const type = async (args: readonly string[], options: Partial<TestIoOptions> = {}) => {
  const io = makeTestIo({ home: home.path, ...options });
  const code = await run(['policy', ...args], io);
  return { code, out: io.out(), err: io.err() };
};

describe('`tunnel policy check`', () => {
  it('confirms a valid file and counts its rules', async () => {
    expect(await type(['check', 'shop.yml', '--services', 'api'])).toEqual({
      code: 0,
      out: 'shop.yml is good: 3 rules\n',
      err: '',
    });
  });

  it('warns about a likely mistake', async () => {
    writeFileSync(
      join(home.path, 'cors.yml'),
      '- auth: { basic: { users: { a: b } } }\n- cors: { origins: "https://a.example" }\n',
    );
    const { code, out } = await type(['check', 'cors.yml']);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^cors\.yml is good: 2 rules\n {2}warning: rule 2: `cors` comes after/),
    ]);
  });

  it.each<[string, string[], RegExp]>([
    ['a route without its service', ['shop.yml'], /shop\.yml:6: `route` names 'api'/],
    [
      'another kind of tunnel',
      ['shop.yml', '--proto', 'tcp', '--services', 'api'],
      /shop\.yml:6: `route` is for http tunnels/,
    ],
    ['a file that is not there', ['nowhere.yml'], /cannot read nowhere\.yml: no such file/],
    ['no file', [], /missing argument: file\./],
    ['a protocol that is none', ['shop.yml', '--proto', 'p2p'], /Use http, tcp, udp/],
  ])('refuses %s with exit code 2', async (_, args, says) => {
    const { code, out, err } = await type(['check', ...args]);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(says);
    expect(err).not.toContain('918273645');
  });
});

const PLANTED = 'hidden918273645';

it.each([
  `- auth: { basic: { users: { anna: [${PLANTED}] } } }`,
  `- auth: { basic: ${PLANTED} }`,
  `- auth: ${PLANTED}`,
  `- ${PLANTED}`,
  PLANTED,
  `- auth: { tokens: [${PLANTED}] }`,
  `- auth: { tokens: [{ name: a, token: ${PLANTED} }] }`,
  `- auth: { tokens: [{ name: a, sha256: ${PLANTED} }] }`,
  `- verify_webhook: { provider: standard, secret: "${PLANTED} " }`,
  `- verify_webhook: { provider: github, secret: { a: ${PLANTED} } }`,
  `- request_headers: { set: { Host: ${PLANTED} } }`,
  `- request_headers: { set: { Authorization: "Bearer {${PLANTED}}" } }`,
  `login: { issuer: ${PLANTED}, client_id: x, client_secret: ${PLANTED} }\nrules: []`,
  `- auth: { basic: { users: { anna: "${PLANTED}`,
])('`tunnel policy check` never prints a secret in its error: %s', async (text) => {
  writeFileSync(join(home.path, 'wrong.yml'), text);
  const { code, out, err } = await type(['check', 'wrong.yml']);
  expect([code, out]).toEqual([2, '']);
  expect(err).toContain('wrong.yml:1: ');
  expect(err).not.toContain(PLANTED);
});

describe('`tunnel policy test`', () => {
  const test = (...args: string[]) => type(['test', 'shop.yml', '--services', 'api', '--request', ...args]);

  it('explains each rule on a line, and the outcome on the last line', async () => {
    expect(await test('GET /admin')).toEqual({
      code: 0,
      out: [
        '1 office  no match: address',
        '2 route   no match: path',
        '3 people  answers 401',
        'answered 401 POLICY_UNAUTHENTICATED by rule 3 (people)',
        '',
      ].join('\n'),
      err: '',
    });
  });

  it('prints the request after rewriting and the service it reaches', async () => {
    const { code, out } = await test('GET /api/x?y', '--address', '10.1.2.3');
    expect([code, out.split('\n').at(-2)]).toEqual([0, 'passes as GET /api/x?y']);
    const credentials = Buffer.from('anna:918273645').toString('base64');
    const routed = await test('GET /api/x?y', '--header', `Authorization: Basic ${credentials}`);
    expect(routed.out).toContain('passes as GET /api/x?y to api\n');
  });

  it('prints the outcome and the trace as JSON with --json', async () => {
    const { out } = await test('GET /admin', '--json');
    expect(JSON.parse(out)).toEqual({
      outcome: 'answer',
      status: 401,
      code: 'POLICY_UNAUTHENTICATED',
      rule: { index: 3, name: 'people', action: 'auth' },
      location: null,
      service: null,
      request: null,
      trace: [
        { index: 1, name: 'office', action: 'allow', matched: false, note: 'address' },
        { index: 2, name: null, action: 'route', matched: false, note: 'path' },
        { index: 3, name: 'people', action: 'auth', matched: true, note: 'answers 401' },
      ],
    });
  });

  it.each<[string, string, number]>([
    ['GET /admin', '401', 0],
    ['GET /admin', 'pass', 1],
    ['GET /admin', '403', 1],
    ['GET /open/x', 'pass', 0],
  ])('for %s with --expect %s exits with %i', async (request, expectation, code) => {
    const ended = await test(request, '--expect', expectation);
    expect(ended.code).toBe(code);
    expect(ended.err).toBe(code === 0 ? '' : `tunnel: expected ${expectation}, got 401\n`);
  });

  it.each<[string, string[]]>([
    ['a request that is none', ['GET']],
    ['an expectation that is none', ['GET /', '--expect', 'maybe']],
    ['a header that is none', ['GET /', '--header', '918273645']],
    ['an address that is none', ['GET /', '--address', 'here']],
    ['a body that is not there', ['GET /', '--body-file', 'nowhere']],
  ])('exits with 2 for %s', async (_, args) => {
    const { code, err } = await test(...args);
    expect(code).toBe(2);
    expect(err).not.toContain('918273645');
  });

  it('requires --request', async () => {
    expect(await type(['test', 'shop.yml'])).toMatchObject({ code: 2 });
  });
});

describe('`tunnel policy hash`', () => {
  const LINE = /^\$scrypt\$ln=14,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}\n$/;

  it('hashes a password from a pipe', async () => {
    const { code, out, err } = await type(['hash'], { stdin: piping('correct horse\n') });
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(LINE);
  });

  it('hashes a typed password without echoing it', async () => {
    const { code, out, err } = await type(['hash'], { stdin: typing('correct horse\n') });
    expect(code).toBe(0);
    expect(out).toMatch(LINE);
    expect(out + err).not.toContain('horse');
  });

  it('prints a hash that `users` accepts', async () => {
    const { out } = await type(['hash'], { stdin: piping('pass word') });
    writeFileSync(join(home.path, 'made.yml'), `- auth: { basic: { users: { anna: "${out.trim()}" } } }\n`);
    const header = `Authorization: Basic ${Buffer.from('anna:pass word').toString('base64')}`;
    const tested = await type(['test', 'made.yml', '--request', 'GET /', '--header', header, '--expect', 'pass']);
    expect(tested.code).toBe(0);
  });

  it('refuses a password that is not UTF-8, because browsers send UTF-8', async () => {
    const { code, out, err } = await type(['hash'], { stdin: piping(Buffer.from([0x70, 0xe4, 0x73, 0x73])) });
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('the password is not UTF-8 text.');
  });

  it('refuses an empty password', async () => {
    expect(await type(['hash'], { stdin: piping('\n') })).toMatchObject({ code: 2, out: '' });
  });
});
