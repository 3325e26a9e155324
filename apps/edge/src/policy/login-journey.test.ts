// Rules and driver together, request by request as sent by a browser: attacks that a login must prevent, beyond the login protocol.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { parseRequestHead } from '@tunnel/http1';
import {
  type Answer,
  begin,
  type CompiledPolicy,
  compilePolicy,
  type LoginAuth,
  type Pass,
  type PolicyDigests,
  type PolicyRequest,
  renderPolicyAnswer,
  resume,
} from '@tunnel/policy';
import { FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { driverOf, loginAt } from './driver.fixture.ts';
import { OddProvider } from './odd-provider.fixture.ts';
import type { EffectSubject, PolicyDriver } from './policy-driver.ts';

const DIGESTS: PolicyDigests = {
  sha256Hex: (text) => createHash('sha256').update(text).digest('hex'),
  hmac: (algorithm, key, parts) => parts.reduce((mac, part) => mac.update(part), createHmac(algorithm, key)).digest(),
  equal: (a, b) => a.length === b.length && timingSafeEqual(a, b),
};

let clock: FakeClock;
let provider: OddProvider;
let driver: PolicyDriver;

beforeEach(async () => {
  clock = new FakeClock();
  provider = await OddProvider.start({ now: () => clock.now() });
  driver = driverOf(clock);
});

afterEach(async () => {
  driver.close();
  await provider.stop();
});

const PAGE = ['accept: text/html', 'sec-fetch-mode: navigate'];
const OWN = 'https://shop.example.com';

/** A browser with cookies at one tunnel. */
class Visitor {
  readonly cookies = new Map<string, string>();
  readonly #compiled: CompiledPolicy;
  readonly #subject: EffectSubject;

  constructor(people: LoginAuth, host = 'shop.example.com') {
    const policy = { login: loginAt(provider), rules: [{ auth: { token_header: 'x-tunnel-token', login: people } }] };
    this.#compiled = compilePolicy(policy, DIGESTS);
    this.#subject = {
      served: this.#compiled,
      policy,
      routeKey: host,
      owner: 'operator',
      tenant: 'operator tun_a',
      host,
      scheme: 'https',
      publicUrl: `https://${host}`,
      address: '192.0.2.1',
    };
  }

  async send(method: string, path: string, lines: readonly string[] = PAGE): Promise<Pass | Answer> {
    const request = this.#requestOf(method, path, lines);
    let step = begin({ operator: null, tunnel: this.#compiled }, request, clock.now());
    while (step.kind === 'effect') {
      if (step.effect.kind === 'hold-body') throw new Error('no rule asks for a body');
      const event = await driver.perform(step.effect, this.#subject, new AbortController());
      step = resume(step.state, event, clock.now());
    }
    for (const [name, value] of fieldsOf(step)) if (name === 'set-cookie') this.#keep(value);
    return step;
  }

  /** Signs in at the provider and sends the callback to the tunnel. */
  async logIn(path = '/'): Promise<Pass | Answer> {
    const sent = await this.send('GET', path);
    const { query } = provider.signIn(locationOf(sent));
    return this.send('GET', `/.tunnel/callback${query}`);
  }

  #requestOf(method: string, path: string, lines: readonly string[]): PolicyRequest {
    const { host } = this.#subject;
    const cookie = [...this.cookies].map((pair) => pair.join('=')).join('; ');
    const fields = [`host: ${host}`, ...lines, ...(cookie === '' ? [] : [`cookie: ${cookie}`])];
    const head = parseRequestHead(`${method} ${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
    if (head.kind !== 'request') throw new Error('not a request');
    return {
      method,
      path,
      headers: head.headers,
      host,
      authority: host,
      scheme: 'https',
      address: '192.0.2.1',
      isUpgrade: head.upgrade !== null,
      bodyLength: 0,
      requestId: 'req_1',
    };
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    if (line.includes('Max-Age=0')) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

const renderedOf = (step: Pass | Answer) =>
  step.kind === 'pass' ? { status: 0, headers: [], body: '' } : renderPolicyAnswer(step.answer, 'text/html');
const fieldsOf = (step: Pass | Answer): readonly (readonly [string, string])[] => renderedOf(step).headers;
const locationOf = (step: Pass | Answer): string => fieldsOf(step).find(([name]) => name === 'location')?.[1] ?? '';
const codeOf = (step: Pass | Answer): string | undefined =>
  fieldsOf(step).find(([name]) => name === 'x-tunnel-error')?.[1];

const ANYONE = { anyone: true } as const;

it('a signed-in visitor passes with an identity, and the service does not get the edge’s cookies', async () => {
  const ann = new Visitor(ANYONE);
  const back = await ann.logIn('/deep?x=1');
  expect([renderedOf(back).status, locationOf(back)]).toEqual([302, '/deep?x=1']);
  expect([...ann.cookies.keys()]).toEqual(['__Host-tunnel_login']);
  ann.cookies.set('own', '1');
  expect(await ann.send('GET', '/deep?x=1')).toMatchObject({
    kind: 'pass',
    identity: { user: 'ann@example.com', method: 'login' },
    changes: { cookie: 'own=1' },
  });
});

it('a program without a session gets a 401 instead of a redirect to the provider', async () => {
  const program = new Visitor(ANYONE);
  const answer = await program.send('GET', '/', ['accept: */*']);
  expect([renderedOf(answer).status, codeOf(answer)]).toEqual([401, 'POLICY_UNAUTHENTICATED']);
});

it.each([
  ['another address', { emails: ['bob@example.com'] }, {}],
  ['another domain', { domains: ['example.org'] }, {}],
  ['a domain with the same ending', { domains: ['ample.com'] }, {}],
  ['an unverified email address', { emails: ['ann@example.com'] }, { email_verified: false }],
  ['an email address with two @', { domains: ['evil.example'] }, { email: 'ann@evil.example@example.com' }],
  ['another group', { claims: { groups: ['board'] } }, { groups: ['staff'] }],
] as [string, LoginAuth, Record<string, unknown>][])(
  'a visitor with %s is refused; the page shows the account and a button to sign out',
  async (_what, people, claims) => {
    provider.claims = claims;
    const ann = new Visitor(people);
    expect(renderedOf(await ann.logIn()).status).toBe(302);
    const refused = await ann.send('GET', '/');
    expect([renderedOf(refused).status, codeOf(refused)]).toEqual([403, 'POLICY_LOGIN_REFUSED']);
    const { body } = renderedOf(refused);
    expect(body).toMatch(claims['email_verified'] === false ? /\bu1\b/i : /\bann@/i);
    expect(body).toContain('action="/.tunnel/logout"');
  },
);

it('a page on a sibling domain cannot send changes or open a WebSocket with the visitor’s cookie', async () => {
  const ann = new Visitor(ANYONE);
  await ann.logIn();
  const from = (origin: string, ...more: string[]): string[] => [`origin: ${origin}`, ...more];
  const upgrade = ['connection: upgrade', 'upgrade: websocket'];
  for (const origin of ['https://evil.example.com', 'http://shop.example.com', 'null']) {
    expect(codeOf(await ann.send('POST', '/', from(origin)))).toBe('POLICY_CROSS_ORIGIN');
    expect(codeOf(await ann.send('GET', '/', from(origin, ...upgrade)))).toBe('POLICY_CROSS_ORIGIN');
  }
  expect(await ann.send('POST', '/', from(OWN))).toMatchObject({ kind: 'pass' });
  expect(await ann.send('GET', '/', from(OWN, ...upgrade))).toMatchObject({ kind: 'pass' });
});

it('a cookie set by a sibling domain for the whole domain is not accepted', async () => {
  const ann = new Visitor(ANYONE);
  await ann.logIn();
  const eve = new Visitor(ANYONE, 'evil.example.com');
  await eve.logIn();
  const mallory = new Visitor(ANYONE);
  for (const [name, value] of [
    ...eve.cookies,
    ['tunnel_login', ann.cookies.get('__Host-tunnel_login') ?? ''],
  ] as const) {
    mallory.cookies.set(name, value);
  }
  expect(codeOf(await mallory.send('GET', '/', ['accept: */*']))).toBe('POLICY_UNAUTHENTICATED');
});

it('signing out ends the session, and needs the button on the tunnel’s own page', async () => {
  const ann = new Visitor(ANYONE);
  await ann.logIn();
  const page = renderedOf(await ann.send('GET', '/.tunnel/logout'));
  expect([page.status, page.body.includes('ann@example.com')]).toEqual([200, true]);
  for (const lines of [[], ['origin: https://evil.example.com'], ['origin: null']]) {
    expect(codeOf(await ann.send('POST', '/.tunnel/logout', lines))).toBe('POLICY_CROSS_ORIGIN');
  }
  expect(ann.cookies.size).toBe(1);
  const done = await ann.send('POST', '/.tunnel/logout', [`origin: ${OWN}`]);
  expect([renderedOf(done).status, locationOf(done), ann.cookies.size]).toEqual([303, '/', 0]);
  expect(locationOf(await ann.send('GET', '/'))).toContain(provider.issuer);
});

it('a shortened list of allowed visitors applies to existing sessions at the next request', async () => {
  const ann = new Visitor(ANYONE);
  await ann.logIn();
  const later = new Visitor({ emails: ['bob@example.com'] });
  for (const [name, value] of ann.cookies) later.cookies.set(name, value);
  expect(codeOf(await later.send('GET', '/'))).toBe('POLICY_LOGIN_REFUSED');
});

it('a browser has at most four pending logins', async () => {
  const ann = new Visitor(ANYONE);
  for (let at = 0; at < 6; at += 1) await ann.send('GET', `/${at}`);
  expect(ann.cookies.size).toBe(4);
});
