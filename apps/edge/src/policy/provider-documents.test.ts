// Documents published by providers, over real sockets and with a fake clock: lifetimes, and invalid responses.

import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { POLICY_CACHE_CHARS_MAX } from './limits.ts';
import { OddProvider } from './odd-provider.fixture.ts';
import {
  CALLS_TO_ALL,
  CALLS_TO_ONE,
  PROVIDER_ANSWER_MAX_BYTES,
  PROVIDER_CALL_MS,
  ProviderCalls,
  type ProviderRef,
} from './provider-calls.ts';
import {
  PROVIDER_KEYS_AGAIN_MS,
  PROVIDER_KEYS_FRESH_MS,
  PROVIDER_METADATA_FRESH_MS,
  PROVIDER_RETRY_MS,
  PROVIDER_STALE_MS,
  ProviderDocuments,
} from './provider-documents.ts';

let clock: FakeClock;
let provider: OddProvider;
let calls: ProviderCalls;
let documents: ProviderDocuments;
let ref: ProviderRef;

const startWith = (allowPrivate: boolean): void => {
  calls = new ProviderCalls({ clock, allowPrivate });
  documents = new ProviderDocuments(calls, clock);
};

beforeEach(async () => {
  clock = new FakeClock();
  provider = await OddProvider.start({ now: () => clock.now() });
  ref = { trust: 'tenant', issuer: provider.issuer };
  startWith(true);
});

afterEach(async () => {
  calls.close();
  await provider.stop();
});

const keys = (): Promise<unknown> => documents.keysAt(ref, `${provider.issuer}/keys`);

it('concurrent requests for the same keys share one call', async () => {
  const found = await Promise.all(Array.from({ length: 20 }, keys));
  expect(new Set(found).size).toBe(1);
  expect(provider.asked.keys).toBe(1);
});

it('metadata is requested once an hour, keys every ten minutes', async () => {
  await documents.metadataOf(ref);
  await keys();
  await clock.advance(PROVIDER_KEYS_FRESH_MS * 0.9 - 1);
  await Promise.all([documents.metadataOf(ref), keys()]);
  expect(provider.asked).toMatchObject({ metadata: 1, keys: 1 });
  await clock.advance(PROVIDER_KEYS_FRESH_MS * 0.1 + 1);
  await Promise.all([documents.metadataOf(ref), keys()]);
  expect(provider.asked).toMatchObject({ metadata: 1, keys: 2 });
  await clock.advance(PROVIDER_METADATA_FRESH_MS);
  await documents.metadataOf(ref);
  expect(provider.asked).toMatchObject({ metadata: 2 });
});

it('keys are refreshed shortly before they expire, without delaying the request', async () => {
  const found = await keys();
  await clock.advance(PROVIDER_KEYS_FRESH_MS * 0.9);
  provider.odd.keys = 'late';
  expect(await keys()).toBe(found);
  await eventually(() => expect(provider.asked.keys).toBe(2));
  await clock.advance(PROVIDER_CALL_MS);
  await eventually(() => expect(calls.results.timeout).toBe(1));
  delete provider.odd.keys;
  await clock.advance(PROVIDER_KEYS_AGAIN_MS);
  expect(await keys()).toBe(found);
  await eventually(async () => expect(await keys()).not.toBe(found));
  expect(provider.asked.keys).toBe(3);
});

it('keys stay valid for a day while the provider fails, and are requested again every ten seconds', async () => {
  const found = await keys();
  provider.odd.keys = 'broken';
  await clock.advance(PROVIDER_KEYS_FRESH_MS);
  expect(await keys()).toBe(found);
  expect(await keys()).toBe(found);
  expect(provider.asked.keys).toBe(2);
  await clock.advance(PROVIDER_KEYS_AGAIN_MS);
  expect(await keys()).toBe(found);
  await eventually(() => expect(calls.results.status).toBe(2));
  expect(provider.asked.keys).toBe(3);
  await clock.advance(PROVIDER_STALE_MS);
  await expect(keys()).rejects.toThrow('it answered 500');
});

it('only the first request waits for a silent provider if keys are known', async () => {
  const found = await keys();
  provider.odd.keys = 'late';
  await clock.advance(PROVIDER_KEYS_FRESH_MS);
  const first = keys();
  await eventually(() => expect(provider.asked.keys).toBe(2));
  await clock.advance(PROVIDER_CALL_MS);
  expect(await first).toBe(found);
  await clock.advance(PROVIDER_KEYS_AGAIN_MS);
  // The clock stands still, so a request that waited for a response would never end.
  expect(await keys()).toBe(found);
  await eventually(() => expect(provider.asked.keys).toBe(3));
  expect(await keys()).toBe(found);
});

it('a failing provider without known keys is asked at most once a second', async () => {
  provider.odd.keys = 'broken';
  await expect(keys()).rejects.toThrow('it answered 500');
  await expect(keys()).rejects.toThrow('it answered 500');
  expect(provider.asked.keys).toBe(1);
  delete provider.odd.keys;
  await clock.advance(PROVIDER_RETRY_MS);
  await keys();
});

it('newer keys are requested at most every ten seconds', async () => {
  await keys();
  const again = (): Promise<unknown> => documents.newerKeysAt(ref, `${provider.issuer}/keys`);
  expect(await again()).toBeNull();
  await clock.advance(PROVIDER_KEYS_AGAIN_MS);
  const newer = await Promise.all([again(), again(), again()]);
  expect(newer[0]).not.toBeNull();
  expect(await again()).toBeNull();
  expect(provider.asked.keys).toBe(2);
});

it.each(['redirect', 'huge', 'broken', 'not-json'] as const)('a response of the kind %s is rejected', async (odd) => {
  provider.odd.metadata = odd;
  await expect(documents.metadataOf(ref)).rejects.toMatchObject({ name: 'ProviderAway' });
  expect(provider.asked).toEqual({ metadata: 1, keys: 0, token: 0, userinfo: 0 });
  const failure: Error = await documents.metadataOf(ref).then(
    () => new Error('it was taken'),
    (error: Error) => error,
  );
  expect(failure.message).not.toContain('s3cret');
});

it('metadata of a different issuer is rejected', async () => {
  provider.metadata = { issuer: 'https://evil.example' };
  await expect(documents.metadataOf(ref)).rejects.toMatchObject({ name: 'ProviderAway' });
});

it('an issuer in another spelling fails without affecting the correct spelling', async () => {
  const wrong = { ...ref, issuer: `${provider.issuer}/tenant/` };
  const right = { ...ref, issuer: `${provider.issuer}/tenant` };
  provider.metadata = { issuer: right.issuer };
  provider.folder = '/tenant';
  await expect(documents.metadataOf(wrong)).rejects.toMatchObject({ name: 'ProviderAway' });
  const both = [documents.metadataOf(wrong), documents.metadataOf(right)] as const;
  await expect(both[0]).rejects.toMatchObject({ name: 'ProviderAway' });
  expect(await both[1]).toMatchObject({ issuer: right.issuer });
});

it('a call to a silent provider is abandoned after five seconds', async () => {
  provider.odd.keys = 'late';
  const asked = keys();
  asked.catch(() => {});
  await eventually(() => expect(provider.asked.keys).toBe(1));
  await clock.advance(PROVIDER_CALL_MS);
  await expect(asked).rejects.toMatchObject({ result: 'timeout' });
  expect(calls.results.timeout).toBe(1);
});

it('at most four calls run per provider; further calls wait and time out within the same five seconds', async () => {
  provider.odd.metadata = 'late';
  const url = `${provider.issuer}/.well-known/openid-configuration`;
  const all = Array.from({ length: 6 }, () => calls.send(ref, { url }));
  for (const call of all) call.catch(() => {});
  await eventually(() => expect(provider.asked.metadata).toBe(CALLS_TO_ONE.atOnce));
  // Calls to a second provider are not delayed.
  const other = await OddProvider.start({ now: () => clock.now() });
  try {
    const answer = await calls.send({ trust: 'tenant', issuer: other.issuer }, { url: `${other.issuer}/keys` });
    expect(answer.status).toBe(200);
  } finally {
    await other.stop();
  }
  await clock.advance(PROVIDER_CALL_MS);
  const ends = await Promise.allSettled(all);
  expect(ends.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 'rejected'));
  expect(provider.asked.metadata).toBe(CALLS_TO_ONE.atOnce);
  await keys();
  expect(clock.pendingTimers).toBe(0);
});

it('silent providers of tenants do not block the operator’s provider', async () => {
  provider.odd.keys = 'late';
  const url = `${provider.issuer}/keys`;
  const all = Array.from({ length: CALLS_TO_ALL.limit }, (_, at) =>
    calls.send({ trust: 'tenant', issuer: `https://${at}.example`, tenant: `account ${at}` }, { url }),
  );
  for (const call of all) call.catch(() => {});
  await eventually(() => expect(provider.asked.keys).toBe(CALLS_TO_ALL.limit));
  await expect(calls.send(ref, { url })).rejects.toMatchObject({ result: 'busy' });
  expect(await documents.metadataOf({ ...ref, trust: 'operator' })).toMatchObject({ issuer: provider.issuer });
  await clock.advance(PROVIDER_CALL_MS);
  await Promise.allSettled(all);
  expect(await documents.metadataOf(ref)).toMatchObject({ issuer: provider.issuer });
});

it('a tenant with many slow providers uses up only its share of the calls', async () => {
  provider.odd.keys = 'late';
  const url = `${provider.issuer}/keys`;
  const many = 2 * CALLS_TO_ALL.perHolder;
  const all = Array.from({ length: many }, (_, at) =>
    calls.send({ trust: 'tenant', issuer: `https://${at}.example`, tenant: 'account evil' }, { url }),
  );
  for (const call of all) call.catch(() => {});
  await eventually(() => expect(provider.asked.keys).toBe(CALLS_TO_ALL.perHolder));
  expect(calls.results.busy).toBe(many - CALLS_TO_ALL.perHolder);
  expect(await documents.metadataOf({ ...ref, tenant: 'account shop' })).toMatchObject({ issuer: provider.issuer });
  await clock.advance(PROVIDER_CALL_MS);
  await Promise.allSettled(all);
});

it('a flood of one tenant does not block a shared issuer for another tenant', async () => {
  provider.odd.keys = 'late';
  const evil = { ...ref, tenant: 'account evil' };
  const url = `${provider.issuer}/keys`;
  const all = Array.from({ length: 100 }, () => calls.send(evil, { url }));
  const asked = documents.keysAt(evil, url);
  for (const call of [...all, asked]) call.catch(() => {});
  await eventually(() => expect(provider.asked.keys).toBe(CALLS_TO_ONE.atOnce));
  delete provider.odd.keys;
  expect(await documents.keysAt({ ...ref, tenant: 'account shop' }, url)).toBeDefined();
  await clock.advance(PROVIDER_CALL_MS);
  await Promise.allSettled([...all, asked]);
});

it('tenants take turns at the operator’s provider, so a flood of one tenant gives way', async () => {
  provider.odd.keys = 'late';
  const url = `${provider.issuer}/keys`;
  const of = (tenant: string): ProviderRef => ({ trust: 'operator', issuer: provider.issuer, tenant });
  const all = Array.from({ length: 100 }, () => calls.send(of('account evil'), { url }));
  for (const call of all) call.catch(() => {});
  await eventually(() => expect(provider.asked.keys).toBe(CALLS_TO_ONE.atOnce));
  await clock.advance(1000);
  const shop = calls.send(of('account shop'), { url });
  delete provider.odd.keys;
  await clock.advance(PROVIDER_CALL_MS - 1000);
  expect(await shop).toMatchObject({ status: 200 });
  await Promise.allSettled(all);
});

it('large key sets evict only key sets of the same tenant', async () => {
  const shop = { ...ref, tenant: 'account shop' };
  const found = await documents.keysAt(shop, `${provider.issuer}/keys`);
  provider.besideKeys = { keys: [{ kty: 'RSA', n: 'x'.repeat(PROVIDER_ANSWER_MAX_BYTES - 1000) }] };
  const sets = 2 * Math.ceil(POLICY_CACHE_CHARS_MAX / PROVIDER_ANSWER_MAX_BYTES);
  for (let at = 0; at < sets; at += 1) {
    await documents.keysAt({ ...ref, tenant: 'account evil' }, `${provider.issuer}/keys#${at}`);
  }
  const before = provider.asked.keys;
  expect(await documents.keysAt(shop, `${provider.issuer}/keys`)).toBe(found);
  expect(provider.asked.keys).toBe(before);
});

it('a set of 80,000 keys is rejected, and unknown fields are not stored', async () => {
  provider.besideKeys = { keys: Array.from({ length: 80_000 }, () => ({})) };
  await expect(documents.keysAt(ref, `${provider.issuer}/keys`)).rejects.toMatchObject({ result: 'failed' });
  provider.besideKeys = { keys: [{ kty: 'EC', x5c: Array.from({ length: 80_000 }, () => ({})) }] };
  const found = await documents.keysAt(ref, `${provider.issuer}/keys#`);
  expect(found.jwks()).toEqual({ keys: [{ kty: 'EC' }] });
  provider.metadata = { more: Array.from({ length: 80_000 }, () => ({})) };
  expect(Object.keys(await documents.metadataOf(ref))).not.toContain('more');
});

it('tenants’ providers need https and a public address unless the operator allows otherwise', async () => {
  startWith(false);
  await expect(keys()).rejects.toMatchObject({ result: 'refused' });
  const tls = { trust: 'tenant', issuer: 'https://127.0.0.1:1' } as const;
  await expect(documents.keysAt(tls, 'https://127.0.0.1:1/keys')).rejects.toMatchObject({ result: 'refused' });
  expect(provider.asked.keys).toBe(0);
  // The restriction does not apply to the operator’s providers.
  await documents.keysAt({ ...ref, trust: 'operator' }, `${provider.issuer}/keys`);
  expect(provider.asked.keys).toBe(1);
});
