// Visitors sign in to a tunnel in a real browser at a real provider, and return to the requested page.
import { expect } from 'vitest';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { openGuarded, PERSON, signIn } from './guarded-tunnel.fixture.ts';

it('a visitor returns to the requested URL after sign-in, the service gets the user name but no edge cookie, and sign-out ends the session', async ({
  profile,
  harness,
  stack,
}) => {
  const { url, issuer, visits } = await openGuarded(harness, stack, profile, 'deep-link');
  const page = await profile.context.newPage();
  await page.goto(`${url}/deep/link?x=1&y=a%20b`);
  expect(page.url().startsWith(issuer)).toBe(true);
  expect(visits).toEqual([]);
  await signIn(page, PERSON);
  await page.getByRole('heading', { name: '/deep/link' }).waitFor();
  expect(page.url()).toBe(`${url}/deep/link?x=1&y=a%20b`);
  expect(visits).toEqual([{ path: '/deep/link?x=1&y=a%20b', user: PERSON, how: 'login', cookie: undefined }]);
  // Scripts of the page cannot read the session cookie.
  expect(await page.evaluate('document.cookie')).toBe('');
  await page.goto(`${url}/next`);
  await page.getByRole('heading', { name: '/next' }).waitFor();

  // Clears the provider's cookies, because the provider would sign the visitor in again without asking.
  await profile.context.clearCookies({ domain: '127.0.0.1' });
  await page.goto(`${url}/.tunnel/logout`);
  expect(await findingsOf(page)).toEqual([]);
  const before = visits.length;
  await page.getByRole('button').click();
  await page.getByLabel('Email').waitFor();
  expect((await profile.context.cookies(url)).filter(({ name }) => name.endsWith('tunnel_login'))).toEqual([]);
  expect(visits).toHaveLength(before);
});
