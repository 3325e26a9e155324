import { describe, expect, it } from 'vitest';
import { RULES, SCRYPT, SHA256 } from '../policies.fixture.ts';
import { problemsOfIssues, problemText } from './policy-problems.ts';
import { filePolicySchema, wirePolicySchema } from './policy-schema.ts';

/** Returns the first error in the words of the edge, or null if the policy is accepted. */
const refusalOf = (policy: unknown): string | null => {
  const parsed = wirePolicySchema.safeParse(policy);
  return parsed.success ? null : problemText(problemsOfIssues(policy, parsed.error.issues)[0]);
};

const fileRefusalOf = (policy: unknown): string | null => {
  const parsed = filePolicySchema.safeParse(policy);
  return parsed.success ? null : problemText(problemsOfIssues(policy, parsed.error.issues)[0]);
};

const ofRule = (rule: unknown): unknown => ({ login: null, rules: [rule] });

describe('a policy in a file', () => {
  it.each(RULES.map(([written, sent]) => [JSON.stringify(written), written, sent] as const))(
    'with the rule %s is converted to its wire form',
    (_, written, sent) => {
      expect(filePolicySchema.parse([written])).toEqual({ login: null, rules: [sent] });
    },
  );

  it('is a list of rules, or a table of login and rules', () => {
    const rules = [{ deny: 403 }];
    expect(filePolicySchema.parse({ rules })).toEqual({ login: null, rules });
    const login = { provider: 'company', session_secs: 28_800, trusted_origins: [] };
    expect(filePolicySchema.parse({ login: { provider: 'company' }, rules })).toEqual({ login, rules });
    expect(filePolicySchema.parse({ login: null, rules })).toEqual({ login: null, rules });
    for (const other of [null, undefined, 'text', 7, true]) {
      expect(fileRefusalOf(other)).toBe('policy: it must be a list of rules, or a table of `login` and `rules`');
    }
  });

  it('names each secret by exactly one of value, file or variable, and none of these forms is accepted on the wire', () => {
    const good = [
      { auth: { basic: { users: { ann: 'hunter2' } } } },
      { auth: { basic: { users_file: 'users' } } },
      {
        auth: {
          tokens: [
            { name: 'a', token: 't'.repeat(20) },
            { name: 'b', token_file: 'f' },
            { name: 'c', token_env: 'E' },
          ],
        },
      },
      { verify_webhook: { provider: 'github', secret: 's' } },
      { verify_webhook: { provider: 'github', secret_file: 'f' } },
      { verify_webhook: { provider: 'github', secret_env: 'E' } },
      { respond: { status: 200, body_file: 'f' } },
      { error_page: { body_file: 'f' } },
    ];
    expect(filePolicySchema.safeParse(good).success).toBe(true);
    const bad = [
      { auth: { basic: { realm: 'x' } } },
      { auth: { tokens: [{ name: 'a' }] } },
      { auth: { tokens: [{ name: 'a', token: 't'.repeat(20), token_file: 'f' }] } },
      { auth: { tokens: [{ name: 'a', token: 't'.repeat(19) }] } },
      { verify_webhook: { provider: 'github' } },
      { verify_webhook: { provider: 'github', secret: 's', secret_env: 'E' } },
      { respond: { status: 200, body: '', body_file: 'f' } },
      { error_page: {} },
    ];
    for (const rule of bad) expect([rule, fileRefusalOf([rule])]).not.toEqual([rule, null]);
    // The wire accepts no secret by value, file or variable.
    for (const rule of good) expect([rule, refusalOf(ofRule(rule))]).not.toEqual([rule, null]);
  });

  it('leaves out keys without a value, since the presence of a key decides the action', () => {
    const [rule] = filePolicySchema.parse([{ name: undefined, allow: undefined, deny: true }]).rules;
    expect(Object.keys(rule ?? {})).toEqual(['deny']);
  });
});

describe('a policy on the wire', () => {
  it.each(RULES.map(([, sent]) => [JSON.stringify(sent), sent] as const))(
    'with the rule %s is accepted unchanged',
    (_, sent) => {
      const policy = { login: null, rules: [sent] };
      expect(wirePolicySchema.parse(policy)).toEqual(policy);
      // Parsed from JSON text, so that the result cannot depend on the identity of objects.
      expect(wirePolicySchema.parse(JSON.parse(JSON.stringify(policy)))).toEqual(policy);
    },
  );

  it('gets all defaults filled in', () => {
    expect(wirePolicySchema.parse({ rules: [{ rate_limit: { requests: 2, per_secs: 1 } }] })).toEqual({
      login: null,
      rules: [{ rate_limit: { requests: 2, per_secs: 1, burst: 2, by: 'address' } }],
    });
    const own = { issuer: 'https://id.example.com', client_id: 'c' };
    expect(wirePolicySchema.parse({ login: own, rules: [] }).login).toEqual({
      ...own,
      scopes: ['openid', 'email', 'profile'],
      session_secs: 28_800,
      trusted_origins: [],
    });
    const [respond] = wirePolicySchema.parse(ofRule({ respond: { status: 204 } })).rules;
    expect(respond).toEqual({ respond: { status: 204, body: '', content_type: 'text/plain' } });
  });

  it('is refused with a plain password or token', () => {
    expect(refusalOf(ofRule({ auth: { basic: { users: { ann: 'hunter2' } } } }))).toBe(
      'policy rule 1: `auth.basic.users.ann` must be a line $scrypt$ln=14,r=8,p=1$salt$hash',
    );
    for (const line of [
      SCRYPT.replace('ln=14', 'ln=20'),
      SCRYPT.slice(0, -1),
      `${SCRYPT}=`,
      SCRYPT.replace('p=1', 'p=64'),
    ]) {
      expect(refusalOf(ofRule({ auth: { basic: { users: { ann: line } } } }))).not.toBeNull();
    }
    expect(refusalOf(ofRule({ auth: { tokens: [{ name: 'ci', token: 't'.repeat(20) }] } }))).toContain(
      'unknown key `token`',
    );
    expect(refusalOf(ofRule({ auth: { tokens: [{ name: 'ci', sha256: SHA256.slice(1) }] } }))).not.toBeNull();
  });
});

describe('an error for a policy', () => {
  it('names the rule, the key and the closest known name, at every level', () => {
    const cases: [unknown, string][] = [
      [{ rules: [{ deny: 403 }], rule: [] }, 'policy: unknown key `rule`; did you mean `rules`?'],
      [{ login: { provder: 'x' }, rules: [] }, 'policy login: unknown key `provder`; did you mean `provider`?'],
      [ofRule({ name: 'office', dney: 403 }), 'policy rule 1 (office): unknown key `dney`; did you mean `deny`?'],
      [
        { rules: [{ deny: 403 }, { match: { pth: ['/a'] }, deny: 403 }] },
        'policy rule 2: unknown key `pth`; did you mean `path`? in `match`',
      ],
      [
        ofRule({ match: { not: { adress: ['::1'] } }, deny: 403 }),
        'policy rule 1: unknown key `adress`; did you mean `address`? in `match.not`',
      ],
      [
        ofRule({ rate_limit: { requests: 0, per_secs: 1 } }),
        'policy rule 1: `rate_limit.requests` must be a whole number from 1 to 1000000',
      ],
      [
        ofRule({ auth: { login: { emails: ['ann@example.com', 'ann'] } } }),
        'policy rule 1: `auth.login.emails[1]` must be an email address',
      ],
      [ofRule({ deny: 399 }), 'policy rule 1: `deny` must be a status from 400 to 599'],
      [
        ofRule({ match: { address: ['10.0.0.0/33'] }, deny: 403 }),
        'policy rule 1: `match.address[0]` must be an address or a network (the prefix of an IPv4 network is 0 to 32)',
      ],
      [
        ofRule({ deny: 403, allow: true }),
        'policy rule 1: it must be a rule with exactly one action, not `allow` and `deny`',
      ],
      [ofRule(7), 'policy rule 1: it must be a table'],
      [
        ofRule({ request_headers: { set: { 'X-Who': '{usr}' } } }),
        'policy rule 1: `request_headers.set.X-Who` must be text with known placeholders ({usr} is unknown; did you mean {user}?)',
      ],
      [
        ofRule({ request_headers: { set: { 'X-Who': '{nope}' } } }),
        'policy rule 1: `request_headers.set.X-Who` must be text with known placeholders ({nope} is unknown; known: {address} {host} {path} {query} {user} {request_id})',
      ],
      [
        ofRule({ verify_webhook: { provider: 'strpie', secrets: ['x'] } }),
        'policy rule 1: `verify_webhook.provider` must be one of standard, stripe, github, slack, shopify, gitlab, hmac; did you mean stripe?',
      ],
      [{ rules: {} }, 'policy: `rules` must be a list of rules'],
      [[], 'policy: it must be a table'],
    ];
    for (const [policy, text] of cases) expect(refusalOf(policy)).toBe(text);
    expect(refusalOf(ofRule({ name: 'nothing' }))).toMatch(
      /^policy rule 1 \(nothing\): it must be a rule with exactly one action: allow, /,
    );
    expect(refusalOf(ofRule({ zzz: 1 }))).toMatch(/unknown key `zzz`; known here: name, match, allow, /);
  });

  it('has a path into the list if the policy is a bare list', () => {
    const written = [{ allow: true }, { deny: 'no' }];
    const parsed = filePolicySchema.safeParse(written);
    const [problem] = problemsOfIssues(written, parsed.error?.issues ?? []);
    expect(problem).toEqual({
      rule: 2,
      ruleName: null,
      path: [1, 'deny'],
      message: '`deny` must be true, or a status from 400 to 599',
    });
  });

  it.each<[string, unknown]>([
    ['a name of 61 characters', { name: 'n'.repeat(61), deny: 403 }],
    ['an empty name', { name: '', deny: 403 }],
    ['a text where headers are set', { response_headers: { set: 'a: b' } }],
    ['a name with a line break', { name: 'a\nb', deny: 403 }],
    ['allow: false', { allow: false }],
    ['a fraction as a status', { deny: 403.5 }],
    ['no network', { allow_addresses: [] }],
    ['an address with a port', { allow_addresses: ['10.0.0.1:80'] }],
    ['an octal address', { allow_addresses: ['010.0.0.1'] }],
    ['an empty list of paths', { match: { path: [] }, deny: 403 }],
    ['a path that is no path', { match: { path: ['admin'] }, deny: 403 }],
    ['a path with a query', { match: { path: ['/a?b'] }, deny: 403 }],
    ['a method with a blank', { match: { method: ['G ET'] }, deny: 403 }],
    ['an empty `not`', { match: { not: {} }, deny: 403 }],
    ['a header that is null', { match: { header: { a: null } }, deny: 403 }],
    ['a header with a colon', { match: { header: { 'a:': true } }, deny: 403 }],
    ['two spellings of a header', { match: { header: { 'X-A': true, 'x-a': false } }, deny: 403 }],
    [
      'a match on an identity header that any visitor can write',
      { match: { header: { 'X-Tunnel-User': true } }, deny: 403 },
    ],
    [
      'an identity header inside `not`, spelled with underscores',
      { match: { not: { header: { x_tunnel_auth: ['login'] } } }, deny: 403 },
    ],
    ['a rate limit by an identity header', { rate_limit: { requests: 1, per_secs: 1, by: 'header:X-Tunnel-User' } }],
    ['auth without a method', { auth: { token_header: 'x-a' } }],
    ['an auth that is empty', { auth: {} }],
    ['no users', { auth: { basic: { users: {} } } }],
    ['a realm with a quote', { auth: { basic: { realm: 'a"b', users: { a: SCRYPT } } } }],
    ['a realm with a line break', { auth: { basic: { realm: 'a\r\nb', users: { a: SCRYPT } } } }],
    [
      'a token header that the edge uses',
      { auth: { token_header: 'X-Tunnel-User', tokens: [{ name: 'a', sha256: SHA256 }] } },
    ],
    [
      'Authorization as a token header',
      { auth: { token_header: 'authorization', tokens: [{ name: 'a', sha256: SHA256 }] } },
    ],
    ['an issuer without a scheme', { auth: { jwt: { issuer: 'id.example.com', audience: ['a'] } } }],
    ['an issuer with a password', { auth: { jwt: { issuer: 'https://a:b@id.example.com', audience: ['a'] } } }],
    ['an issuer that is a script', { auth: { jwt: { issuer: 'javascript:alert(1)', audience: ['a'] } } }],
    ['a JWT without an audience', { auth: { jwt: { issuer: 'https://id.example.com' } } }],
    ['a login that accepts no visitor', { auth: { login: {} } }],
    ['anyone: false', { auth: { login: { anyone: false } } }],
    ['anyone beside a list', { auth: { login: { anyone: true, domains: ['a.example'] } } }],
    ['a domain with an @', { auth: { login: { domains: ['@example.com'] } } }],
    ['a domain with a star', { auth: { login: { domains: ['*.example.com'] } } }],
    ['a webhook without a secret', { verify_webhook: { provider: 'github', secrets: [] } }],
    ['a webhook of an unknown sender', { verify_webhook: { provider: 'githib', secrets: ['s'] } }],
    ['5 MiB of a webhook', { verify_webhook: { provider: 'github', secrets: ['s'], max_bytes: 5 * 1024 * 1024 } }],
    ['hmac without a header', { verify_webhook: { provider: 'hmac', secrets: ['s'] } }],
    ['a header beside github', { verify_webhook: { provider: 'github', secrets: ['s'], header: 'x' } }],
    [
      'a standard secret that is no base64',
      { verify_webhook: { provider: 'standard', secrets: ['whsec_not base64'] } },
    ],
    ['a rate by nothing', { rate_limit: { requests: 1, per_secs: 1, by: 'header:' } }],
    ['a rate by a header with a blank', { rate_limit: { requests: 1, per_secs: 1, by: 'header:a b' } }],
    ['a rate over a second’s part', { rate_limit: { requests: 1, per_secs: 0.5 } }],
    ['a body below nothing', { max_body: -1 }],
    ['an endless body', { max_body: Number.POSITIVE_INFINITY }],
    ['a size as text on the wire', { max_body: '10MiB' }],
    ['a redirect to a script', { redirect: { to: 'javascript:alert(1)' } }],
    ['a redirect to a host of the visitor', { redirect: { to: 'https://{user}.example.com/' } }],
    ['a redirect to a host with more than the host', { redirect: { to: 'https://a.{host}/' } }],
    ['a redirect to a user and a host', { redirect: { to: 'https://good.example@evil.example/' } }],
    ['a redirect with a backslash', { redirect: { to: '/\\evil.example' } }],
    ['a redirect with a line break', { redirect: { to: '/a\r\nSet-Cookie: a=b' } }],
    ['a redirect with an unknown placeholder', { redirect: { to: '/{uri}' } }],
    ['a redirect of status 300', { redirect: { to: '/', status: 300 } }],
    ['an answer of status 101', { respond: { status: 101 } }],
    ['a 204 with a body', { respond: { status: 204, body: 'x' } }],
    ['a content type with a line break', { respond: { status: 200, content_type: 'text/html\r\nA: b' } }],
    ['Content-Type among the headers', { respond: { status: 200, headers: { 'content-type': 'text/html' } } }],
    ['a rewrite of nothing', { rewrite: {} }],
    ['a prefix without a slash', { rewrite: { strip_prefix: 'api' } }],
    ['a prefix with dots', { rewrite: { add_prefix: '/a/../b' } }],
    ['a prefix with a query', { rewrite: { add_prefix: '/a?b' } }],
    ['a service with a blank', { route: 'a b' }],
    ['a service of 33 characters', { route: 's'.repeat(33) }],
    ['changes of nothing', { request_headers: {} }],
    ['a value with a line break', { response_headers: { set: { a: 'b\r\nc: d' } } }],
    ['a value with a NUL', { response_headers: { set: { a: 'b\0' } } }],
    ['a value that is a number', { response_headers: { set: { a: 7 } } }],
    ['a name with a line break', { response_headers: { set: { 'a\r\nb': 'c' } } }],
    ['an unknown placeholder', { request_headers: { set: { a: 'x {usr}' } } }],
    ['a placeholder with blanks', { request_headers: { set: { a: 'x { user }' } } }],
    ['any site with credentials', { cors: { origins: ['*'], credentials: true } }],
    ['an origin with a path', { cors: { origins: ['https://a.example/'] } }],
    ['an origin of files', { cors: { origins: ['null'] } }],
    ['an error page without a page', { error_page: {} }],
  ])('is reported for %s', (_, rule) => {
    expect(refusalOf(ofRule(rule))).not.toBeNull();
  });

  it.each([
    ...['Host', 'content-length', 'Transfer-Encoding', 'Trailer', 'TE', 'Connection', 'Keep-Alive', 'Upgrade'],
    ...['Proxy-Connection', 'Proxy-Authorization', 'Expect', 'X-Forwarded-For', 'x-forwarded-proto', 'X_Forwarded_For'],
    ...['X-Real-IP', 'x_real_ip'],
    ...['X-Tunnel-User', 'x_tunnel_auth', 'X-Tunnel-Error', ':path', 'a b', ''],
  ])('is reported if a rule sets or removes the header %j', (name) => {
    for (const action of ['request_headers', 'response_headers']) {
      for (const changes of [{ set: { [name]: 'x' } }, { add: { [name]: 'x' } }, { remove: [name] }]) {
        expect([changes, refusalOf(ofRule({ [action]: changes }))]).not.toEqual([changes, null]);
      }
    }
    expect(refusalOf(ofRule({ respond: { status: 200, headers: { [name]: 'x' } } }))).not.toBeNull();
  });

  it('names the header that cannot be changed', () => {
    expect(refusalOf(ofRule({ request_headers: { set: { 'X-A': 'b', Host: 'a' } } }))).toBe(
      'policy rule 1: `request_headers.set.Host` must be the name of a header that rules may change (not Host, framing, hop-by-hop, X-Real-IP, X-Forwarded-* or X-Tunnel-*)',
    );
  });

  it.each(['provider', 'issuer'])('is reported for missing or extra keys of a login by %s', (kind) => {
    const base = kind === 'provider' ? { provider: 'company' } : { issuer: 'https://a.example', client_id: 'c' };
    expect(refusalOf({ login: base, rules: [] })).toBeNull();
    const cases = [
      {},
      { session_secs: 59 },
      { ...base, session_secs: 59 },
      { ...base, session_secs: 2_592_001 },
      { ...base, trusted_origins: ['https://a.example/x'] },
      { ...base, scopes: ['email'] },
      kind === 'provider' ? { ...base, client_secret: 's' } : { issuer: 'https://a.example' },
      kind === 'provider' ? { provider: '' } : { ...base, issuer: 'ftp://a.example' },
      { ...base, client_secret_file: 'f' },
    ];
    for (const login of cases) expect([login, refusalOf({ login, rules: [] })]).not.toEqual([login, null]);
  });

  it('repeats no value and no name that may be a secret', () => {
    const secret = 'hunter2-hunter2-hunter2';
    const rules = [
      { auth: { basic: { users: { ann: secret } } } },
      { auth: { basic: { users: { [`ann:${secret}`]: SCRYPT } } } },
      { auth: { basic: { users: [secret] } } },
      { auth: { basic: { users: secret } } },
      { auth: { basic: secret } },
      { auth: { [`basic: ${secret}`]: 1 } },
      { auth: { tokens: [{ name: 'a', token: `${secret}\n` }] } },
      { auth: { tokens: [{ name: 'a', sha256: secret }] } },
      { auth: { tokens: [secret] } },
      { auth: secret },
      { verify_webhook: { provider: 'standard', secrets: [secret] } },
      { verify_webhook: { provider: secret, secrets: [secret] } },
      { request_headers: { set: { authorization: `${secret}\r\n` } } },
      { request_headers: { set: { [`Authorization: Bearer ${secret}`]: 'x' } } },
      { respond: { status: 204, body: secret } },
      { match: { header: { 'x-key': { secret } } }, deny: 403 },
      { redirect: { to: secret } },
    ];
    const policies = [
      ...rules.map(ofRule),
      { login: { issuer: secret, client_id: secret, client_secret: { secret } }, rules: [] },
      { login: { provider: 'x', client_secret: secret }, rules: [] },
      secret,
    ];
    for (const policy of policies) {
      for (const schema of [wirePolicySchema, filePolicySchema]) {
        const parsed = schema.safeParse(policy);
        const problems = parsed.success ? [] : problemsOfIssues(policy, parsed.error.issues);
        expect(problems.map(problemText).filter((text) => text.includes(secret))).toEqual([]);
      }
    }
  });
});
