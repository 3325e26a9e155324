import { Secret } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { OidcCallbackRelay } from './oidc-callback-relay.ts';
import { SealedTexts } from './sealed-texts.ts';

const clock = new FakeClock();
const relayOf = (secret = 's'.repeat(43)): OidcCallbackRelay =>
  new OidcCallbackRelay(new SealedTexts([new Secret(secret)]), clock);
const TARGET = { origin: 'https://shop.example.com:8443', until: clock.now() + 600_000 };
const refused = { fault: { code: 'POLICY_LOGIN_STATE' } };

const locationOf = (answer: ReturnType<OidcCallbackRelay['answer']>): string | undefined =>
  'response' in answer ? answer.response.headers.find(([name]) => name === 'location')?.[1] : undefined;

it('a callback is forwarded to the tunnel sealed into the state, with all parameters of the provider', () => {
  const callbackRelay = relayOf();
  const state = callbackRelay.stateFor('0a1b2c3d.secret', TARGET);
  const query = new URLSearchParams({ code: 'c o&d=e', state, iss: 'https://login.example' });
  const answer = callbackRelay.answer(`/.tunnel/callback?${query.toString()}`);
  const location = new URL(locationOf(answer) ?? '');
  expect(location.origin + location.pathname).toBe('https://shop.example.com:8443/.tunnel/callback');
  const { code = '', ...rest } = Object.fromEntries(location.searchParams);
  expect(rest).toEqual({ state: '0a1b2c3d.secret', iss: 'https://login.example' });
  expect(callbackRelay.codeOf('0a1b2c3d.secret', code)).toBe('c o&d=e');
  expect(answer).toMatchObject({
    response: { status: 302, headers: expect.arrayContaining([['cache-control', 'no-store']]) },
  });
});

it('a code is forwarded sealed for its login: unreadable on the way, and useless for other logins', () => {
  const callbackRelay = relayOf();
  const state = callbackRelay.stateFor('0a1b2c3d.secret', TARGET);
  const answer = callbackRelay.answer(`/.tunnel/callback?code=the-code&state=${state}`);
  const code = new URL(locationOf(answer) ?? '').searchParams.get('code') ?? '';
  expect(Buffer.from(code, 'base64url').toString('latin1')).not.toContain('the-code');
  expect(callbackRelay.codeOf('0a1b2c3d.secret', code)).toBe('the-code');
  expect(callbackRelay.codeOf('ffffffff.secret', code)).toBeNull();
  expect(relayOf('t'.repeat(43)).codeOf('0a1b2c3d.secret', code)).toBeNull();
  for (const other of ['the-code', '', state.slice(state.lastIndexOf('.') + 1)]) {
    expect(callbackRelay.codeOf('0a1b2c3d.secret', other)).toBeNull();
  }
});

it('a callback with a missing, made-up, foreign, moved or repeated state is refused', () => {
  const callbackRelay = relayOf();
  const state = callbackRelay.stateFor('0a1b2c3d.secret', TARGET);
  const foreign = relayOf('t'.repeat(43)).stateFor('0a1b2c3d.secret', { ...TARGET, origin: 'https://evil.example' });
  const moved = `ffffffff.secret.${state.slice(state.lastIndexOf('.') + 1)}`;
  for (const path of [
    ...['/.tunnel/callback', '/.tunnel/callback?', '/.tunnel/callback?code=1', '/.tunnel/callback?state='],
    ...['https://evil.example', 'a.b.c', '.', foreign, moved].map((text) => `/.tunnel/callback?state=${text}`),
    `/.tunnel/callback?state=${state}&state=${state}`,
    `/.tunnel/callback?state=${state}&code=%ff`,
  ]) {
    expect([path, callbackRelay.answer(path)]).toMatchObject([path, refused]);
  }
});

it('a line break in the provider’s parameters is encoded', () => {
  const callbackRelay = relayOf();
  const state = callbackRelay.stateFor('0a1b2c3d.secret', TARGET);
  const answer = callbackRelay.answer(`/.tunnel/callback?state=${state}&error=%0d%0aSet-Cookie:x=y`);
  expect(locationOf(answer)).not.toMatch(/[\r\n]/);
  expect(locationOf(answer)).toContain('error=%0D%0ASet-Cookie');
});

it('a state is refused once its login has expired', async () => {
  const callbackRelay = relayOf();
  const state = callbackRelay.stateFor('0a1b2c3d.secret', TARGET);
  await clock.advance(600_000);
  expect(callbackRelay.answer(`/.tunnel/callback?state=${state}`)).toMatchObject(refused);
});
