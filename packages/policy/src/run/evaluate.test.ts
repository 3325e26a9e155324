import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { compilePolicy } from '../compile/compile.ts';
import { renderPolicyAnswer } from '../compile/policy-answers.ts';
import { editedEdgeResponse } from '../edits/response-edits.ts';
import {
  authOf,
  DIGESTS,
  drive,
  headerOf,
  LOGIN,
  NAVIGATION,
  NOW,
  policyOf,
  requestOf,
  sessionOf,
  verdictOf,
} from '../policy.fixture.ts';
import type { Policy, Rule } from '../policy.ts';
import type { PolicyStep } from '../policy-step.ts';
import { begin, decideConnection, resume } from './evaluate.ts';

const OFFICE = { address: ['10.0.0.0/8'] };

it('the first matching answer is used, and a request that no rule matches passes unchanged', () => {
  const policy = policyOf([
    { match: { path: ['/admin/**'] }, deny: 404 },
    { match: { path: ['/**'], method: ['DELETE'] }, deny: 403 },
  ]);
  expect(verdictOf(drive(policy, requestOf({ path: '/admin/x', method: 'DELETE' })))).toBe('404 POLICY_DENIED');
  expect(verdictOf(drive(policy, requestOf({ method: 'DELETE' })))).toBe('403 POLICY_DENIED');
  expect(drive(policy, requestOf()).outcome).toEqual({
    kind: 'pass',
    changes: null,
    edits: [],
    matched: [],
    identity: null,
    heldBody: null,
  });
});

it('requests that no rule matches share one result object', () => {
  const lists = { operator: null, tunnel: compilePolicy(policyOf([{ match: OFFICE, deny: 403 }]), DIGESTS) };
  expect(begin(lists, requestOf(), NOW)).toBe(begin(lists, requestOf({ path: '/x' }), NOW));
});

it('allow ends only its own list of rules', () => {
  const open = policyOf([{ allow: true }, { deny: 403 }]);
  expect(verdictOf(drive(open, requestOf()))).toBe('pass');
  expect(verdictOf(drive({ operator: open, tunnel: policyOf([{ deny: 404 }]) }, requestOf()))).toBe(
    '404 POLICY_DENIED',
  );
  const denied = drive({ operator: policyOf([{ deny: 451 }]), tunnel: open }, requestOf());
  expect(denied.outcome).toMatchObject({ rule: { list: 'operator', index: 1, name: null, action: 'deny' } });
});

it('the same compiled policy can be used in both lists', () => {
  const both = compilePolicy(policyOf([{ response_headers: { set: { a: '1' } } }]), DIGESTS);
  expect(begin({ operator: both, tunnel: both }, requestOf(), NOW)).toMatchObject({ kind: 'pass', edits: [{}, {}] });
});

it('allow_addresses denies addresses that are not on the list', () => {
  const policy = policyOf([{ name: 'office', allow_addresses: ['10.0.0.0/8', '2001:db8::/32'] }]);
  const from = (address: string): string => verdictOf(drive(policy, requestOf({ address })));
  expect([from('10.1.2.3'), from('2001:db8::1'), from('192.0.2.1')]).toEqual(['pass', 'pass', '403 POLICY_DENIED']);
});

it('a rate limit takes a token for its key, and answers 429 with Retry-After if there is none', () => {
  const rule: Rule = { rate_limit: { requests: 10, per_secs: 60, burst: 20, by: 'header:x-key' } };
  const request = requestOf({ headers: [['X-Key', 'abc']] });
  const taken = drive(policyOf([rule]), request, () => ({ kind: 'token-taken', retryAfterSecs: null }));
  expect(verdictOf(taken)).toBe('pass');
  expect(taken.effects).toEqual([
    {
      kind: 'take-token',
      rule: { list: 'tunnel', index: 1, name: null, action: 'rate_limit' },
      key: 'header:=abc',
      requests: 10,
      perSecs: 60,
      burst: 20,
    },
  ]);
  const { outcome } = drive(policyOf([rule]), request, () => ({ kind: 'token-taken', retryAfterSecs: 0.2 }));
  expect(outcome).toMatchObject({ answer: { status: 429, retryAfterSecs: 1 } });
});

it('a body with a known length above the limit is refused at once, a body of unknown length is capped', () => {
  const policy = policyOf([{ max_body: 100 }, { max_body: 50 }]);
  expect(verdictOf(drive(policy, requestOf({ bodyLength: 51 })))).toBe('413 POLICY_BODY_TOO_LARGE');
  expect(drive(policy, requestOf({ bodyLength: 50 })).outcome).toMatchObject({ kind: 'pass', changes: null });
  expect(drive(policy, requestOf({ bodyLength: null })).outcome).toMatchObject({ changes: { maxBody: 50 } });
});

it("redirect and respond send the owner's response", () => {
  const answers = (rule: Rule, path = '/a?b'): unknown => {
    const { outcome } = drive(policyOf([rule]), requestOf({ path }));
    return outcome.kind === 'answer' ? renderPolicyAnswer(outcome.answer, null) : outcome;
  };
  expect(answers({ redirect: { to: 'https://new.example{path}{query}', status: 308 } })).toEqual({
    status: 308,
    headers: [['location', 'https://new.example/a?b']],
    body: '',
  });
  const respond = { status: 503, body: 'zurück', content_type: 'text/plain', headers: { 'Retry-After': '60' } };
  expect(answers({ respond })).toEqual({
    status: 503,
    headers: [
      ['content-type', 'text/plain; charset=utf-8'],
      ['retry-after', '60'],
    ],
    body: 'zur\xc3\xbcck',
  });
});

it('later rules still match the path that the visitor requested', () => {
  const policy = policyOf([
    { match: { path: ['/api/**'] }, rewrite: { strip_prefix: '/api' } },
    { match: { path: ['/api/**'] }, route: 'api' },
    { match: { path: ['/v1/**'] }, deny: 403 },
  ]);
  expect(drive(policy, requestOf({ path: '/api/v1/x?q' })).outcome).toMatchObject({
    kind: 'pass',
    changes: { path: '/v1/x?q', service: 'api' },
    matched: [{ index: 1 }, { index: 2 }],
  });
});

it('a path cannot climb out of a prefix that a rule adds', () => {
  const policy = policyOf([{ rewrite: { add_prefix: '/public' } }]);
  expect(verdictOf(drive(policy, requestOf({ path: '/%2e%2e/etc' })))).toBe('400 POLICY_DENIED');
});

it('a later header rule overrides an earlier rule for the same header', () => {
  const policy = policyOf([
    { request_headers: { set: { 'X-A': '1', 'X-B': '{address}' }, add: { 'X-C': '1' } } },
    { request_headers: { remove: ['x-a'], set: { 'x-c': '2' } } },
  ]);
  expect(drive(policy, requestOf()).outcome).toMatchObject({
    changes: {
      remove: ['x-a'],
      set: [
        ['X-B', '192.0.2.1'],
        ['x-c', '2'],
      ],
      add: [],
    },
  });
});

it('response headers and error pages of earlier rules apply to the answers of later rules', () => {
  const policy = policyOf([
    { response_headers: { set: { 'x-id': '{request_id}' } } },
    { error_page: { body: 'x' } },
    { deny: 403 },
  ]);
  expect(drive(policy, requestOf()).outcome).toMatchObject({
    kind: 'answer',
    edits: [
      { kind: 'headers', set: [['x-id', 'req_1']] },
      { kind: 'error-page', body: 'x' },
    ],
  });
});

it("the operator's response changes are applied after the tunnel's, so that a tunnel cannot undo them", () => {
  const lists = {
    operator: policyOf([
      { response_headers: { set: { 'x-frame-options': 'DENY' } } },
      { cors: { origins: ['https://a'], credentials: false, max_age_secs: 5 } },
    ]),
    tunnel: policyOf([
      { response_headers: { remove: ['x-frame-options'], set: { 'access-control-allow-origin': '*' } } },
    ]),
  };
  const answering = {
    ...lists,
    tunnel: policyOf([...lists.tunnel.rules, { respond: { status: 200, body: '', content_type: 'text/plain' } }]),
  };
  for (const both of [lists, answering]) {
    const { outcome } = drive(both, requestOf({ headers: [['origin', 'https://a']] }));
    const { headers } = editedEdgeResponse({ status: 200, headers: [], body: '' }, outcome.edits);
    expect(headers).toEqual([
      ['x-frame-options', 'DENY'],
      ['access-control-allow-origin', 'https://a'],
      ['vary', 'Origin'],
    ]);
  }
});

it('a response to a signed-in visitor is private, even if a later rule removes Cache-Control', () => {
  const policy = policyOf(
    [authOf({ login: { anyone: true } }), { response_headers: { remove: ['cache-control'] } }],
    LOGIN,
  );
  const { outcome } = drive(policy, requestOf({ headers: [['cookie', '__Host-tunnel_login=x']] }), () => ({
    kind: 'cookie-opened',
    session: sessionOf(),
  }));
  const { headers } = editedEdgeResponse(
    { status: 200, headers: [['cache-control', 'public']], body: '' },
    outcome.edits,
  );
  expect(headers).toEqual([['cache-control', 'private']]);
});

it('response headers of rules apply to the login redirect, but never change its cookies, location and caching', () => {
  const changes = { 'x-frame-options': 'DENY', 'Set-Cookie': 'a=b', location: '/', 'cache-control': 'public' };
  const policy = policyOf(
    [{ response_headers: { set: changes, remove: ['set-cookie', 'server'] } }, authOf({ login: { anyone: true } })],
    LOGIN,
  );
  const { outcome } = drive(policy, requestOf({ headers: NAVIGATION }), () => ({
    kind: 'login-begun',
    location: 'https://login',
    setCookies: ['__Host-tunnel_login_0a1b2c3d=x'],
  }));
  expect(outcome).toMatchObject({
    kind: 'answer',
    edits: [{ kind: 'headers', set: [['x-frame-options', 'DENY']], add: [], remove: ['server'] }],
  });
});

it('a preflight is answered at the position of its rule, other requests get CORS headers', () => {
  const policy = policyOf([{ cors: { origins: ['https://a'], credentials: false, max_age_secs: 5 } }, { deny: 403 }]);
  const headers = [
    ['origin', 'https://a'],
    ['access-control-request-method', 'PUT'],
  ] as const;
  expect(verdictOf(drive(policy, requestOf({ method: 'OPTIONS', headers })))).toBe('204');
  expect(drive(policy, requestOf({ headers })).outcome).toMatchObject({ kind: 'answer', edits: [{ kind: 'cors' }] });
});

const GITHUB: Rule = { verify_webhook: { provider: 'github', secrets: ['s'], max_bytes: 10 } };

it('a webhook body is held, verified, and passed on unchanged', () => {
  const body = Uint8Array.of(1, 2, 3);
  const sum = DIGESTS.hmac('sha256', Uint8Array.of(0x73), [new Uint8Array(0), body]);
  const hex = [...sum].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  const request = (signature: string, bodyLength: number | null) =>
    requestOf({ method: 'POST', bodyLength, headers: [['x-hub-signature-256', `sha256=${signature}`]] });
  const held = drive(policyOf([GITHUB, GITHUB, { max_body: 5 }]), request(hex, null), () => ({
    kind: 'body-held',
    body,
  }));
  expect(held.effects).toEqual([{ kind: 'hold-body', maxBytes: 10 }]);
  expect(held.outcome).toMatchObject({ kind: 'pass', heldBody: body });
  const wrong = drive(policyOf([GITHUB]), request('00', 3), () => ({ kind: 'body-held', body }));
  expect(verdictOf(wrong)).toBe('403 POLICY_WEBHOOK_REFUSED');
  expect(verdictOf(drive(policyOf([GITHUB]), request(hex, 11)))).toBe('413 POLICY_BODY_TOO_LARGE');
  expect(verdictOf(drive(policyOf([GITHUB]), request(hex, null), () => ({ kind: 'body-too-large' })))).toBe(
    '413 POLICY_BODY_TOO_LARGE',
  );
  expect(
    verdictOf(drive(policyOf([GITHUB, { max_body: 2 }]), request(hex, null), () => ({ kind: 'body-held', body }))),
  ).toBe('413 POLICY_BODY_TOO_LARGE');
  expect(
    drive(policyOf([{ max_body: 2 }, GITHUB]), request(hex, null), () => ({ kind: 'body-too-large' })).effects,
  ).toEqual([{ kind: 'hold-body', maxBytes: 2 }]);
  expect(drive(policyOf([GITHUB]), requestOf({ method: 'POST', bodyLength: null })).effects).toEqual([]);
});

it('GitLab webhooks are verified by their headers, and their bodies are capped', () => {
  const policy = policyOf([{ verify_webhook: { provider: 'gitlab', secrets: ['s'], max_bytes: 10 } }]);
  const headers = [['x-gitlab-token', 's']] as const;
  expect(drive(policy, requestOf({ headers, bodyLength: null })).outcome).toMatchObject({ changes: { maxBody: 10 } });
});

it('a check that fails with an error is answered with that error', () => {
  const fault = new Fault('POLICY_BUSY');
  const busy = drive(
    policyOf([GITHUB]),
    requestOf({ bodyLength: 1, headers: [['x-hub-signature-256', 'sha256=00']] }),
    () => ({
      kind: 'failed',
      fault,
      retryAfterSecs: 2,
    }),
  );
  expect(busy.outcome).toMatchObject({ answer: { fault, status: 503, retryAfterSecs: 2 }, rule: { index: 1 } });
});

it('an event that was not requested gets 500 and does not let the request in', () => {
  const limit: Rule = { rate_limit: { requests: 1, per_secs: 1, burst: 1, by: 'tunnel' } };
  for (const event of [
    { kind: 'body-held', body: new Uint8Array(0) },
    { kind: 'password-checked', isRight: true },
    { kind: 'login-finished', returnPath: '/', setCookies: [] },
  ] as const) {
    expect(verdictOf(drive(policyOf([limit], LOGIN), requestOf(), () => event))).toBe('500 INTERNAL');
  }
  expect(() => resume({ waiting: 'take-token' }, { kind: 'body-too-large' }, NOW)).toThrow('not a state');
});

it('a rule listener gets, for each rule, the reason for no match or the effect of the rule', () => {
  const policy: Policy = policyOf([
    { name: 'office', match: OFFICE, allow: true },
    { match: { method: ['GET'] }, route: 'api' },
    { deny: 403 },
    { deny: 404 },
  ]);
  const lines: string[] = [];
  drive(policy, requestOf(), undefined, ({ index, name }, matched, note) => {
    lines.push(`${index} ${name ?? '-'} ${matched} ${note}`);
  });
  expect(lines).toEqual(['1 office false address', '2 - true to the service api', '3 - true answers 403']);
});

// ---- connections ----

const connection = (rules: readonly Rule[], operator: readonly Rule[] = []): PolicyStep => {
  const lists = {
    operator: compilePolicy(policyOf(operator), DIGESTS, 'operator'),
    tunnel: compilePolicy(policyOf(rules), DIGESTS),
  };
  return decideConnection(lists, '192.0.2.1', NOW);
};

it('tcp connections are judged by their address only, and rules on requests are skipped', () => {
  expect(connection([{ match: OFFICE, allow: true }, { deny: 403 }])).toMatchObject({
    kind: 'answer',
    rule: { index: 2 },
  });
  expect(connection([{ match: { not: OFFICE }, allow: true }, { deny: 403 }]).kind).toBe('pass');
  expect(connection([{ allow_addresses: ['192.0.2.0/24'] }]).kind).toBe('pass');
  expect(
    connection(
      [],
      [{ match: { path: ['/admin'] }, deny: 403 }, { respond: { status: 200, body: '', content_type: '' } }],
    ).kind,
  ).toBe('pass');
  expect(connection([{ allow: true }], [{ deny: 403 }])).toMatchObject({ kind: 'answer', rule: { list: 'operator' } });
});

it('a rate limit on tcp connections waits for its token', () => {
  const step = connection([{ rate_limit: { requests: 1, per_secs: 1, burst: 1, by: 'address' } }]);
  if (step.kind !== 'effect') throw new Error(step.kind);
  expect(step.effect).toMatchObject({ kind: 'take-token', key: '192.0.2.1' });
  expect(resume(step.state, { kind: 'token-taken', retryAfterSecs: 1 }, NOW).kind).toBe('answer');
});

it('a denied visitor gets a page or JSON with the status of the rule', () => {
  const { outcome } = drive(policyOf([{ deny: 410 }]), requestOf());
  if (outcome.kind !== 'answer') throw new Error('passed');
  const page = renderPolicyAnswer(outcome.answer, 'application/json');
  expect(page.status).toBe(410);
  expect(headerOf(page.headers, 'x-tunnel-error')).toBe('POLICY_DENIED');
  expect(JSON.parse(page.body)).toMatchObject({ code: 'POLICY_DENIED' });
});

const LONG_PATH = `/${'a'.repeat(30_000)}`;
const EACH = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`x-h${at}`, '{path}']));

it.each<[string, Rule]>([
  ['a request header', { request_headers: { set: { 'x-a': '{path}'.repeat(300) } } }],
  ['fifty request headers', { request_headers: { add: EACH } }],
  ['a response header', { response_headers: { add: { 'x-a': '{path}'.repeat(300) } } }],
  ['fifty response headers', { response_headers: { set: EACH } }],
  ['a redirect', { redirect: { to: `/new${'{path}'.repeat(300)}`, status: 302 } }],
])('long visitor input in placeholders gets 431 instead of a huge head: %s', (_what, rule) => {
  expect(verdictOf(drive(policyOf([rule]), requestOf({ path: LONG_PATH })))).toBe('431 HTTP_HEAD_TOO_LARGE');
  expect(verdictOf(drive(policyOf([rule]), requestOf({ path: '/a' })))).toBe('redirect' in rule ? '302' : 'pass');
});

it('all rules of a request share one budget for placeholders', () => {
  const once: Rule = { request_headers: { set: { 'x-a': '{path}' } } };
  const path = LONG_PATH;
  expect(verdictOf(drive(policyOf([once, once]), requestOf({ path })))).toBe('pass');
  expect(verdictOf(drive(policyOf([once, once, once]), requestOf({ path })))).toBe('431 HTTP_HEAD_TOO_LARGE');
});
