import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Secret, sha256Hex } from '@tunnel/runtime';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isPasswordRight } from './password-hashes.ts';
import { type PolicyAbout, policyFrom, readPolicyFile, type TunnelPolicy } from './tunnel-policy.ts';

/** The planted secret: used wherever a test policy holds a secret, and never repeated in any output. */
const PLANTED = '918273645';
const TOKEN = `${PLANTED}-and-eleven-more`;
const HTTP: PolicyAbout = { protocol: 'http', services: ['api'] };

let folder: TemporaryDirectory;
let file: string;

beforeEach(async () => {
  folder = await temporaryDirectory();
  file = join(folder.path, 'policy.yml');
});
afterEach(() => folder.close());

const read = (text: string | Buffer, env: NodeJS.ProcessEnv = {}): TunnelPolicy => {
  writeFileSync(file, text);
  return readPolicyFile(file, { shown: 'policy.yml', env, home: folder.path });
};

const beside = (name: string, text: string | Buffer): void => writeFileSync(join(folder.path, name), text);

const sentOf = async (policy: TunnelPolicy) => (await policy.sent(null, ['api'])).policy;

describe('a policy file', () => {
  it('is a list of rules, or a table with login and rules', async () => {
    const list = read('- deny: true\n- allow: true\n');
    const table = read('rules:\n  - deny: true\n  - allow: true\n');
    expect(list.ruleCount).toBe(2);
    expect(await sentOf(list)).toEqual(await sentOf(table));
    expect(list.fingerprint).toBe(table.fingerprint);
    expect((await list.sent(null, [])).hash).toMatch(/^[0-9a-f]{64}$/);
  });

  it('can name files relative to its folder, and environment variables', async () => {
    mkdirSync(join(folder.path, 'secrets'));
    beside('secrets/users', `# of the preview\nanna:${PLANTED}\n\nbert:a:b\n`);
    beside('secrets/token', `${TOKEN}\n`);
    beside('page.html', '<p>ö</p>');
    const policy = read(
      [
        'login: { issuer: "https://id.example.com", client_id: shop, client_secret_env: SECRET }',
        'rules:',
        '  - auth:',
        '      basic: { users_file: secrets/users }',
        '      tokens: [{ name: ci, token_file: secrets/token }]',
        '      login: { anyone: true }',
        '  - match: { path: /hook }',
        '    verify_webhook: { provider: github, secret_file: secrets/token }',
        '  - error_page: { body_file: page.html }',
      ].join('\n'),
      { SECRET: 'client secret' },
    );
    policy.check(HTTP);
    const sent = await sentOf(policy);
    const auth = sent.rules[0] as unknown as { auth: { basic: { users: Record<string, string> }; tokens: object[] } };
    expect(sent.login).toMatchObject({ client_secret: 'client secret' });
    expect(Object.keys(auth.auth.basic.users)).toEqual(['anna', 'bert']);
    expect(await isPasswordRight(auth.auth.basic.users['anna'] ?? '', PLANTED)).toBe(true);
    expect(await isPasswordRight(auth.auth.basic.users['bert'] ?? '', 'a:b')).toBe(true);
    expect(auth.auth.tokens).toEqual([{ name: 'ci', sha256: sha256Hex(TOKEN) }]);
    expect(sent.rules[1]).toMatchObject({ verify_webhook: { secrets: [TOKEN] } });
    expect(sent.rules[2]).toMatchObject({ error_page: { body: '<p>ö</p>' } });
  });

  it('gets a new fingerprint only when a referenced file changes', () => {
    beside('users', 'anna:one\n');
    const text = '- auth: { basic: { users_file: users } }\n';
    const before = read(text).fingerprint;
    expect(read(text).fingerprint).toBe(before);
    beside('users', 'anna:two\n');
    expect(read(text).fingerprint).not.toBe(before);
  });

  it('shows its guards in logs, but no secrets', () => {
    const policy = read(`- auth: { basic: { users: { anna: "${PLANTED}" } } }\n`);
    expect(inspect(policy) + JSON.stringify({ policy })).not.toContain(PLANTED);
    expect(policy.guard).not.toBe('');
  });

  it('has the same hash for all members with the same group key', async () => {
    const policy = read('- auth: { basic: { users: { anna: secret } } }\n');
    const one = await policy.sent(new Secret('k'), []);
    const other = await policy.sent(new Secret('k'), []);
    expect(one.hash).toBe(other.hash);
    expect((await policy.sent(new Secret('another'), [])).hash).not.toBe(one.hash);
  });
});

describe('an invalid policy is refused in one line that names the place and repeats no secret', () => {
  const refusal = (run: () => unknown): string => {
    try {
      run();
    } catch (error) {
      const { message, code } = error as Error & { code: string };
      expect(message).not.toContain('\n');
      expect(message).not.toContain(PLANTED);
      return `${code} ${message}`;
    }
    throw new Error('it was not refused');
  };

  it.each<[what: string, text: string | Buffer, says: RegExp]>([
    ['nothing at all', '', /policy\.yml:1: `.*` must be a list of rules, or a table/],
    ['a number', PLANTED, /policy\.yml:1: .*got a number/],
    ['no YAML', '- deny: [', /policy\.yml:1: /],
    ['no UTF-8', Buffer.from([0x2d, 0x20, 0xff, 0xfe]), /cannot read policy\.yml: it is not UTF-8 text/],
    ['a huge file', `# ${'x'.repeat(1_100_000)}`, /cannot read policy\.yml: it is larger than/],
    ['an alias of itself', '- &a [*a]\n', /policy\.yml:1: an alias refers to itself/],
    [
      'an unknown key',
      'rules:\n  - mach: {}\n    deny: true\n',
      /policy\.yml:2: unknown key `rules\[0\]\.mach`; did you mean `match`\?/,
    ],
    [
      'an unknown key in a match',
      '- deny: true\n  match: { pth: / }\n',
      /:2: unknown key `\[0\]\.match\.pth`; did you mean `path`\?/,
    ],
    ['an unknown key at the top', 'rulez: []\nrules: []\n', /:1: unknown key `rulez`; did you mean `rules`\?/],
    ['two actions', '- deny: true\n  allow: true\n', /:1: `\[0\]` must be a rule with exactly one action/],
    ['no action', '- name: x\n', /:1: `\[0\]` must be a rule with exactly one action/],
    [
      'a number out of range',
      '- allow: true\n- deny: 200\n',
      /:2: `\[1\]\.deny` must be true, or a status from 400 to 599, got 200/,
    ],
    [
      'a network',
      '- allow_addresses:\n    - 10.0.0.0/8\n    - 10.0.0.0/33\n',
      /:3: `\[0\]\.allow_addresses\[1\]` must be an address or a network.*got "10\.0\.0\.0\/33"/,
    ],
    [
      'a network that stands alone',
      '- allow_addresses: 10.0.0.0/33\n',
      /:1: `\[0\]\.allow_addresses` must be.*got "10\.0\.0\.0\/33"/,
    ],
    ['a header that breaks lines', '- request_headers: { set: { X-A: "a\\r\\nb" } }\n', /:1: /],
    ['a header of ours', '- request_headers: { set: { X-Tunnel-User: me } }\n', /:1: /],
    ['an unknown placeholder', '- response_headers: { set: { X-A: "{usr}" } }\n', /did you mean \{user\}\?/],
    ['a password that is a number', `- auth: { basic: { users: { anna: ${PLANTED} } } }\n`, /:1: .*got a number/],
    [
      'a password where a table is',
      `- auth: { basic: "${PLANTED}" }\n`,
      /:1: `\[0\]\.auth\.basic` must be a table, got a string/,
    ],
    [
      'a secret under a wrong name',
      `- verify_webhook: { provider: github, secrt: "${PLANTED}" }\n`,
      /unknown key .*did you mean `secret`\?/,
    ],
    [
      'a secret that a blank is missing before',
      `- auth: { tokens: [{ name: ci, token:${PLANTED} }] }\n`,
      /:1: unknown key `\[0\]\.auth\.tokens\[0\]\."…"`; a space is missing after `token:`/,
    ],
    [
      'a password where keys are',
      `- auth: { basic: { anna:${PLANTED} } }\n`,
      /unknown key .*; known here: realm, users/,
    ],
    [
      'a secret where its variable is',
      `- auth: { tokens: [{ name: ci, token_env: x${PLANTED} }] }\n`,
      /got one, which is/,
    ],
    ['one rule too many', '- deny: true\n'.repeat(101), /policy\.yml:101: .*at most 100 rules/],
    ['a number that is none', '- rate_limit: { requests: .inf, per_secs: 1 }\n', /whole number .*, got Infinity/],
    ['a short token', `- auth: { tokens: [{ name: ci, token: "${PLANTED}" }] }\n`, /:1: .*at least|20 to/],
    [
      'a file that is not there',
      '- auth: { basic: { users_file: nowhere } }\n',
      /:1: `\[0\]\.auth\.basic\.users_file` must be a file with lines name:password, got "nowhere": no such file/,
    ],
    [
      'a variable that is not set',
      '- auth: { tokens: [{ name: ci, token_env: NOT_SET }] }\n',
      /:1: .*"NOT_SET", which is not set/,
    ],
    ['a page that is not there', '- error_page: { body_file: nowhere.html }\n', /:1: .*"nowhere\.html": no such file/],
  ])('%s', (_what, text, says) => {
    expect(refusal(() => read(text).check(HTTP))).toMatch(says);
  });

  it.each<[what: string, content: string | Buffer, reason: string]>([
    ['no such line', '# nobody\n', 'the file has no such line'],
    ['a line without a colon', `anna:x\n${PLANTED}\n`, 'line 2 is not name:password'],
    ['a line without a password', 'anna:\n', 'line 1 is not name:password'],
    ['a user twice', `anna:${PLANTED}\nanna:x\n`, 'line 2 repeats a user'],
    ['no UTF-8', Buffer.from([0xff, 0x3a, 0x41]), 'it is not UTF-8 text'],
    ['nothing', '', 'it is empty'],
    ['a huge password', `anna:${'x'.repeat(5000)}\n`, 'the password in line 1 is longer than'],
  ])('a users file with %s', (_what, content, reason) => {
    beside('users', content);
    expect(refusal(() => read('- auth: { basic: { users_file: users } }\n'))).toContain(reason);
  });

  it.each([
    ['is too large', 'x'.repeat(16_385), 'it has 16385 bytes'],
    ['is no UTF-8', Buffer.from([0xff]), 'it is not UTF-8 text'],
  ])('a page that %s', (_what, content, reason) => {
    beside('page', content);
    expect(refusal(() => read('- error_page: { body_file: page }\n'))).toContain(reason);
  });

  it('a token in a file that is too short', () => {
    beside('token', PLANTED);
    expect(refusal(() => read('- auth: { tokens: [{ name: ci, token_file: token }] }\n'))).toContain('got one of 9');
  });

  it('an alias bomb is refused without being expanded', () => {
    const levels = Array.from({ length: 12 }, (_, i) => {
      const item = i === 0 ? 'x' : `*a${i - 1}`;
      return `a${i}: &a${i} [${Array(9).fill(item).join(',')}]`;
    });
    expect(refusal(() => read(levels.join('\n')))).toContain('too many aliases');
  });

  it('a policy that is too large for a control message', () => {
    const rules = Array.from({ length: 4 }, () => `- respond: { status: 200, body: "${'x'.repeat(16_000)}" }`);
    expect(refusal(() => read(rules.join('\n')).check(HTTP))).toMatch(/policy\.yml:1: it has \d+ bytes/);
  });

  it.each<[string, PolicyAbout, RegExp]>([
    [
      '- auth: { login: { anyone: true } }',
      { protocol: 'tcp', services: [] },
      /policy\.yml:1: .*`auth` is for http tunnels/,
    ],
    ['- allow: true\n- route: nowhere', HTTP, /policy\.yml:2: /],
    ['- deny: true', { protocol: 'p2p', services: [] }, /policy is for http, tcp and udp tunnels/],
  ])('%s on the wrong kind of tunnel', (text, about, says) => {
    expect(refusal(() => read(text).check(about))).toMatch(says);
  });
});

describe('the policy of a program', () => {
  it('is given as values and checked like a policy file', async () => {
    const policy = policyFrom([{ auth: { tokens: [{ name: 'ci', token: TOKEN }] } }]);
    expect(JSON.stringify(await sentOf(policy))).toContain(sha256Hex(TOKEN));
    expect(() => policyFrom([{ deny: 200 }])).toThrow('policy: `[0].deny` must be');
    expect(policyFrom(policy)).toBe(policy);
  });
});
