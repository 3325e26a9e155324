// Strangers who send callbacks without end: the cost for the provider, and the effect on visitors who sign in meanwhile.
import type { PolicyEvent } from '@tunnel/policy';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Browser, driverOf, loginAt, operatorsAt } from './driver.fixture.ts';
import { OddProvider } from './odd-provider.fixture.ts';
import type { EffectSubject, PolicyDriver } from './policy-driver.ts';
import { CALLS_TO_ONE, PROVIDER_CALL_MS } from './provider-calls.ts';

let clock: FakeClock;
let provider: OddProvider;
let driver: PolicyDriver;

beforeEach(async () => {
  clock = new FakeClock();
  provider = await OddProvider.start({ now: () => clock.now() });
  driver = driverOf(clock, { providers: operatorsAt(provider) });
});

afterEach(async () => {
  driver.close();
  await provider.stop();
});

const COMPANY = { provider: 'company', session_secs: 3600, trusted_origins: [] };
const EVE = { address: '198.51.100.7' };
/** More calls than can run and wait at the same time. */
const MANY = CALLS_TO_ONE.atOnce + CALLS_TO_ONE.waitingMax + 32;

const callbackOf = (location: string, code: string): string =>
  `?${new URLSearchParams({ code, state: new URL(location).searchParams.get('state') ?? '' }).toString()}`;

/** The query of a callback as it reaches the tunnel. Callbacks of the operator’s provider pass through the edge. */
const arrived = (query: string): string => {
  const answer = driver.callbackRelay.answer(`/.tunnel/callback${query}`);
  const [, location] = ('response' in answer && answer.response.headers.find(([name]) => name === 'location')) || [];
  return location === undefined ? query : new URL(location).search;
};

describe.each([
  ['of a tunnel', () => loginAt(provider), (query: string) => query],
  ['of the operator', () => COMPANY, arrived],
] as const)('a provider %s', (_, login, through) => {
  /** Begins many valid logins and finishes them with invalid codes. */
  const flood = async (subject: Partial<EffectSubject>): Promise<Promise<PolicyEvent>[]> => {
    const browsers = Array.from({ length: MANY }, () => new Browser(driver, login(), subject));
    const queries: string[] = [];
    for (const browser of browsers) queries.push(through(callbackOf(await browser.locationOf(), 'junk')));
    return browsers.map((browser, at) => browser.finish(queries[at] ?? ''));
  };

  it('gets no request for an unknown state, and one request for a repeated callback', async () => {
    const ann = new Browser(driver, login());
    const location = await ann.locationOf();
    for (let at = 0; at < MANY; at += 1) {
      const junk = `?code=junk&state=${at.toString(16).padStart(8, '0')}.${'A'.repeat(22)}`;
      expect(await ann.finish(junk)).toMatchObject({ fault: { code: 'POLICY_LOGIN_STATE' } });
    }
    expect(provider.asked.token).toBe(0);
    const junk = through(callbackOf(location, 'junk'));
    const all = await Promise.all(Array.from({ length: MANY }, () => ann.finish(junk)));
    for (const event of all) expect(event).toMatchObject({ fault: { code: 'POLICY_LOGIN_STATE' } });
    expect(provider.asked.token).toBe(1);
  });

  it('still serves a visitor while a stranger floods it with invalid codes', async () => {
    const ann = new Browser(driver, login());
    const query = through(provider.signIn(await ann.locationOf()).query);
    provider.odd.token = 'late';
    const junk = await flood(EVE);
    await eventually(() => expect(provider.asked.token).toBe(CALLS_TO_ONE.atOnce));
    await clock.advance(1000);
    const event = ann.finish(query);
    delete provider.odd.token;
    await clock.advance(PROVIDER_CALL_MS - 1000);
    expect(await event).toMatchObject({ kind: 'login-finished' });
    for (const end of junk) expect(await end).toMatchObject({ fault: { code: 'POLICY_PROVIDER_AWAY' } });
  });
});

it('a flood through one tunnel does not block the operator’s provider for other visitors or accounts', async () => {
  const bob = new Browser(driver, COMPANY, { tenant: 'account 2', owner: 'account 2' });
  const ann = new Browser(driver, COMPANY);
  const queries: string[] = [];
  for (const browser of [ann, bob]) queries.push(arrived(provider.signIn(await browser.locationOf()).query));
  provider.odd.token = 'late';
  const flood: Promise<PolicyEvent>[] = [];
  for (let at = 0; at < MANY; at += 1) {
    // For the edge, the addresses belong to a single network.
    const eve = new Browser(driver, COMPANY, { address: `2001:db8::${at.toString(16)}` });
    flood.push(eve.finish(arrived(callbackOf(await eve.locationOf(), 'junk'))));
  }
  await eventually(() => expect(provider.asked.token).toBe(CALLS_TO_ONE.atOnce));
  await clock.advance(1000);
  const both = [ann.finish(queries[0] ?? ''), bob.finish(queries[1] ?? '')];
  delete provider.odd.token;
  await clock.advance(PROVIDER_CALL_MS - 1000);
  for (const event of both) expect(await event).toMatchObject({ kind: 'login-finished' });
  await Promise.all(flood);
});
