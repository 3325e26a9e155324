// Attacks on the login of another person, by the owner of a tunnel or by a program posing as a browser.
import { FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Browser, driverOf, loginAt, operatorsAt } from './driver.fixture.ts';
import { OddProvider } from './odd-provider.fixture.ts';
import type { PolicyDriver } from './policy-driver.ts';
import { SealedTexts } from './sealed-texts.ts';

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
const STATE = { kind: 'failed', fault: { code: 'POLICY_LOGIN_STATE' } };

const stateIn = (location: string): string => new URL(location).searchParams.get('state') ?? '';

/** The URL to which the edge’s own callback redirects. */
const bounced = (query: string): URL => {
  const answer = driver.callbackRelay.answer(`/.tunnel/callback${query}`);
  const [, location = ''] =
    ('response' in answer && answer.response.headers.find(([name]) => name === 'location')) || [];
  return new URL(location);
};

it('a code caught by another tunnel opens no session, even with the state of one login and the challenge of another', async () => {
  const eve = new Browser(driver, COMPANY);
  const evesTunnel = new Browser(driver, COMPANY, {
    served: {},
    routeKey: 'evil',
    owner: 'account 2',
    host: 'evil.example.com',
    publicUrl: 'https://evil.example.com',
  });
  // Eve begins a login at the shop, and gets Ann to sign in for that login with the state of Eve’s tunnel.
  const bait = new URL(await eve.locationOf());
  const [id = '', secret = ''] = stateIn(bait.href).split('.');
  bait.searchParams.set('state', stateIn(await evesTunnel.locationOf()));
  const { query } = provider.signIn(bait.href);
  const caught = bounced(query);
  expect(caught.origin).toBe('https://evil.example.com');
  for (const code of [caught.searchParams.get('code') ?? '', new URLSearchParams(query).get('code') ?? '']) {
    const callback = new URLSearchParams({ code, state: `${id}.${secret}` });
    expect(await eve.finish(`?${callback.toString()}`)).toMatchObject(STATE);
  }
  expect(eve.logins).toEqual([]);
  expect(provider.asked.token).toBe(0);
});

it('a callback with 900 junk cookies of pending logins opens only the matching cookie', async () => {
  const ann = new Browser(driver, loginAt(provider));
  const { query } = provider.signIn(await ann.locationOf());
  const junk = Array.from({ length: 900 }, (_, at) => [at.toString(16).padStart(8, '0'), 'A'.repeat(40)] as const);
  const open = vi.spyOn(SealedTexts.prototype, 'open');
  const event = await ann.finish(query, new Map([...junk, ...ann.pending]));
  const { length } = open.mock.calls;
  open.mockRestore();
  expect([event, length]).toMatchObject([{ kind: 'login-finished' }, 1]);
});
