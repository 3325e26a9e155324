// Bearer tokens of a provider over real sockets: accepted and rejected tokens, and the number of requests to the provider.
import { createHmac, hash } from 'node:crypto';
import type { JwtAuth, PolicyEvent } from '@tunnel/policy';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { JWT_KNOWN_MS, JWT_SKEW_SECS, JwtVerifier } from './jwt-verifier.ts';
import { OddProvider } from './odd-provider.fixture.ts';
import { CALLS_TO_ONE, PROVIDER_CALL_MS, ProviderCalls } from './provider-calls.ts';
import { PROVIDER_KEYS_AGAIN_MS, ProviderDocuments } from './provider-documents.ts';

let clock: FakeClock;
let provider: OddProvider;
let calls: ProviderCalls;
let verifier: JwtVerifier;
let auth: JwtAuth;

beforeEach(async () => {
  clock = new FakeClock();
  provider = await OddProvider.start({ now: () => clock.now() });
  calls = new ProviderCalls({ clock, allowPrivate: true });
  verifier = new JwtVerifier(new ProviderDocuments(calls, clock), clock);
  auth = { issuer: provider.issuer, audience: ['api'] };
});

afterEach(async () => {
  calls.close();
  await provider.stop();
});

const CALLER = { trust: 'tenant', tenant: 'account 1' } as const;
const nowSecs = (): number => Math.floor(clock.now() / 1000);
const good = (): Record<string, unknown> => ({ iss: provider.issuer, aud: 'api', sub: 'bot', exp: nowSecs() + 3600 });
const perform = (token: string, policyId = '1'): PolicyEvent | Promise<PolicyEvent> =>
  verifier.perform(auth, token, policyId, CALLER);
const NOT_GOOD = { kind: 'jwt-verified', claims: null };

it.each(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'])(
  'a token signed with %s is accepted, and recognized at once the next time',
  async (alg) => {
    await provider.changeKeys([alg]);
    const token = await provider.token(good());
    expect(await perform(token)).toMatchObject({ kind: 'jwt-verified', claims: { sub: 'bot' } });
    expect(perform(token)).toMatchObject({ claims: { sub: 'bot' } });
    expect(provider.asked).toMatchObject({ metadata: 1, keys: 1 });
    // A known token is unknown under a new policy.
    expect(perform(token, '2')).toBeInstanceOf(Promise);
  },
);

it('the digest of a known long token is not accepted as a token', async () => {
  const token = await provider.token({ ...good(), pad: 'x'.repeat(1100) });
  expect(await perform(token)).toMatchObject({ claims: { sub: 'bot' } });
  expect(perform(token)).toMatchObject({ claims: { sub: 'bot' } });
  const digest = hash('sha256', token, 'base64url');
  for (const text of [digest, `#${digest}`]) expect(await perform(text)).toEqual(NOT_GOOD);
});

it('keys from a configured key set URL need no discovery', async () => {
  auth = { ...auth, jwks_url: `${provider.issuer}/keys` };
  expect(await perform(await provider.token(good()))).toMatchObject({ claims: { sub: 'bot' } });
  expect(provider.asked).toMatchObject({ metadata: 0, keys: 1 });
});

it('slow key sets do not delay other rules with the same issuer', async () => {
  const slow = await OddProvider.start({ now: () => clock.now() });
  slow.odd.keys = 'late';
  const token = await provider.token(good());
  const held: (PolicyEvent | Promise<PolicyEvent>)[] = [];
  try {
    // The fixture serves a single path of keys. A fragment after `#` makes a different URL, and is not sent.
    for (let at = 0; at < CALLS_TO_ONE.atOnce; at += 1) {
      const jwks_url = `${slow.issuer}/keys#${at}`;
      held.push(verifier.perform({ ...auth, jwks_url }, token, `slow ${at}`, CALLER));
    }
    await eventually(() => expect(slow.asked.keys).toBe(CALLS_TO_ONE.atOnce));
    expect(await perform(token)).toMatchObject({ claims: { sub: 'bot' } });
    await clock.advance(PROVIDER_CALL_MS);
    for (const event of held) expect(await event).toMatchObject({ fault: { code: 'POLICY_PROVIDER_AWAY' } });
  } finally {
    await slow.stop();
  }
});

it.each([
  ['of another issuer', { iss: 'https://evil.example' }],
  ['for another audience', { aud: 'other' }],
  ['without an audience', { aud: undefined }],
  ['without an expiry', { exp: undefined }],
  ['expired by more than the clock skew', { exp: -31 }],
  ['not yet valid', { nbf: 31 }],
] as [string, Record<string, unknown>][])('a token %s is rejected', async (_what, change) => {
  const times = Object.fromEntries(
    Object.entries(change).map(([name, value]) => [name, typeof value === 'number' ? nowSecs() + value : value]),
  );
  expect(await perform(await provider.token({ ...good(), ...times }))).toEqual(NOT_GOOD);
});

it('a token is accepted despite a clock difference of half a minute', async () => {
  const early = await provider.token({ ...good(), nbf: nowSecs() + 29 });
  expect(await perform(early)).toMatchObject({ claims: { sub: 'bot' } });
  const late = await provider.token({ ...good(), exp: nowSecs() - 29 });
  expect(await perform(late)).toMatchObject({ claims: { sub: 'bot' } });
});

it('tokens with alg none or a shared secret are rejected without asking the provider', async () => {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = part(good());
  const hmac = (key: string): string => {
    const text = `${part({ alg: 'HS256' })}.${body}`;
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
  };
  for (const token of [
    ...[`${part({ alg: 'none' })}.${body}.`, `${part({ alg: 'None' })}.${body}.`, hmac('guess'), hmac('')],
    ...[`${part({})}.${body}.x`, 'x', '..', '', 'a.b.c.d.e', `${part({ alg: 'RS256' })}.${body}.${'A'.repeat(9000)}`],
  ]) {
    expect([token.slice(0, 40), await perform(token)]).toEqual([token.slice(0, 40), NOT_GOOD]);
  }
  expect(provider.asked).toMatchObject({ metadata: 0, keys: 0 });
});

it('a token signed with a stranger’s key under a published key id is rejected', async () => {
  const [head = ''] = (await provider.token(good())).split('.');
  const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string };
  const stranger = await OddProvider.start({ now: () => clock.now() });
  try {
    expect(await perform(await stranger.token(good(), { kid }))).toEqual(NOT_GOOD);
  } finally {
    await stranger.stop();
  }
});

it('changed keys are requested from the provider, at most every ten seconds', async () => {
  await perform(await provider.token(good()));
  await provider.changeKeys();
  const token = await provider.token(good());
  expect(await perform(token)).toEqual(NOT_GOOD);
  await clock.advance(PROVIDER_KEYS_AGAIN_MS);
  expect(await perform(token)).toMatchObject({ claims: { sub: 'bot' } });
  expect(provider.asked.keys).toBe(2);
  // Made-up key ids cause no further requests.
  for (let at = 0; at < 20; at += 1) {
    expect(await perform(await provider.token({ ...good(), at }, { kid: `made-up-${at}` }))).toEqual(NOT_GOOD);
  }
  expect(provider.asked.keys).toBe(2);
});

it('a token without a key id is checked with every possible key', async () => {
  await provider.changeKeys(['ES256', 'ES256', 'ES256']);
  const token = await provider.token(good(), { kid: undefined }, 2);
  expect(await perform(token)).toMatchObject({ claims: { sub: 'bot' } });
});

it('an accepted token is recognized for five minutes, but never after its expiry', async () => {
  const long = await provider.token(good());
  const short = await provider.token({ ...good(), exp: nowSecs() + 60 });
  await perform(long);
  await perform(short);
  await clock.advance(61_000 + JWT_SKEW_SECS * 1000);
  expect(perform(long)).not.toBeInstanceOf(Promise);
  expect(await perform(short)).toEqual(NOT_GOOD);
  await clock.advance(JWT_KNOWN_MS);
  expect(perform(long)).toBeInstanceOf(Promise);
});

it('a token never verified before is refused while the provider is unreachable', async () => {
  provider.odd.keys = 'broken';
  const event = await perform(await provider.token(good()));
  expect(event).toMatchObject({ kind: 'failed', fault: { code: 'POLICY_PROVIDER_AWAY' } });
});
