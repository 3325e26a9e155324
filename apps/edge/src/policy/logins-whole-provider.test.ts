// A complete login with oidc-provider: discovery, forms, code, ID token and user info.
import { systemClock } from '@tunnel/runtime';
import { afterEach, expect, it } from 'vitest';
import { Browser, driverOf, EDGE_URL, loginAt, operatorsAt, SHOP_URL } from './driver.fixture.ts';
import type { PolicyDriver } from './policy-driver.ts';
import { WholeProvider } from './whole-provider.fixture.ts';

let provider: WholeProvider | undefined;
let driver: PolicyDriver | undefined;

afterEach(async () => {
  driver?.close();
  await provider?.stop();
});

it('a visitor signs in with the tunnel’s own provider', async () => {
  provider = await WholeProvider.start([`${SHOP_URL}/.tunnel/callback`]);
  driver = driverOf(systemClock);
  const ann = new Browser(driver, loginAt(provider));
  const back = await provider.signIn(await ann.locationOf('/deep?x=1'), 'ann');
  expect(back.origin + back.pathname).toBe(`${SHOP_URL}/.tunnel/callback`);
  expect(await ann.finish(back.search)).toMatchObject({ kind: 'login-finished', returnPath: '/deep?x=1' });
  expect(await ann.session()).toMatchObject({ sub: 'ann', email: 'ann@example.com', emailVerified: true });
  expect(driver.metrics.providerRequests).toMatchObject({ ok: 4, status: 0, failed: 0 });
});

it('a visitor signs in with the operator’s provider, through the edge’s callback', async () => {
  provider = await WholeProvider.start([`${EDGE_URL}/.tunnel/callback`]);
  driver = driverOf(systemClock, { providers: operatorsAt(provider), allowPrivate: false });
  const login = { provider: 'company', session_secs: 600, trusted_origins: [] };
  const ann = new Browser(driver, login);
  const back = await provider.signIn(await ann.locationOf('/'), 'ann');
  expect(back.origin).toBe(EDGE_URL);
  const answer = driver.callbackRelay.answer(back.pathname + back.search);
  const [, location = ''] =
    ('response' in answer && answer.response.headers.find(([name]) => name === 'location')) || [];
  expect(new URL(location).origin).toBe(SHOP_URL);
  expect(await ann.finish(new URL(location).search)).toMatchObject({ kind: 'login-finished', returnPath: '/' });
  expect(await ann.session()).toMatchObject({ email: 'ann@example.com' });
});

it('a wrong client secret signs no visitor in', async () => {
  provider = await WholeProvider.start([`${SHOP_URL}/.tunnel/callback`]);
  driver = driverOf(systemClock);
  const { issuer, clientId } = provider;
  const ann = new Browser(driver, loginAt({ issuer, clientId, clientSecret: 'wrong' }));
  const back = await provider.signIn(await ann.locationOf(), 'ann');
  expect(await ann.finish(back.search)).toMatchObject({ kind: 'failed', fault: { code: 'POLICY_PROVIDER_AWAY' } });
  expect(ann.logins).toEqual([]);
});
