// People log in at a tunnel, in a real browser and at a real provider: they come back to the page that they asked for, and to no other; nobody else gets in.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Harness } from '../system/harness.fixture.ts';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { startIdentityProvider } from './identity-provider.fixture.ts';
import type { StackAddress } from './own-stack.fixture.ts';
import type { Profile } from './profile.fixture.ts';

const PERSON = 'ann@example.com';
const STRANGER = 'eve@elsewhere.example';

interface Visit {
  readonly path: string | undefined;
  readonly user: string | undefined;
  readonly how: string | undefined;
  readonly cookie: string | undefined;
}

interface GuardedTunnel {
  readonly url: string;
  readonly issuer: string;
  /** What the service saw, without icons. */
  readonly visits: Visit[];
}

/** A service behind a login for people of example.com, with a page for each path. */
const openGuarded = async (
  harness: Harness,
  stack: StackAddress,
  profile: Profile,
  name: string,
): Promise<GuardedTunnel> => {
  const visits: Visit[] = [];
  const web = harness.use(
    await startWeb((request, response) => {
      const { cookie, 'x-tunnel-user': user, 'x-tunnel-auth': how } = request.headers;
      if (request.url !== '/favicon.ico')
        visits.push({ path: request.url, user: user?.toString(), how: how?.toString(), cookie });
      response.setHeader('content-type', 'text/html');
      response.end(`<!doctype html><html lang="en"><title>Shop</title><h1>${request.url?.split('?')[0]}</h1></html>`);
    }),
  );
  const subdomain = `${name}-${process.pid}`;
  const { port } = new URL(stack.run.http_url);
  const url = `http://${subdomain}.localhost:${port}`;
  const provider = harness.use(await startIdentityProvider([`${url}/.tunnel/callback`]));
  const file = join(await harness.folder(), 'policy.yml');
  const rules = 'rules: [{ name: people, auth: { login: { domains: [example.com] } } }]';
  writeFileSync(file, `login: ${provider.login}\n${rules}\n`, { mode: 0o600 });
  const key = await (await Account.signUp(stack, name)).newKey();
  const flags = ['--json', '--subdomain', subdomain, '--policy', file, '--server', stack.control];
  const tunnel = await harness.run(['http', String(web.port), ...flags], { env: { TUNNEL_API_KEY: key.token } });
  expect((await tunnel.ready()).public_url).toBe(url);
  for (const host of [url, provider.issuer]) profile.allowHostOf(host);
  return { url, issuer: provider.issuer, visits };
};

const signIn = async (page: Page, email: string): Promise<void> => {
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Sign in' }).click();
};

it('a deep link with its query survives the login; the service learns who it is and sees no cookie of the edge; log-out ends it', async ({
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
  // No script of the page can take the session away.
  expect(await page.evaluate('document.cookie')).toBe('');
  await page.goto(`${url}/next`);
  await page.getByRole('heading', { name: '/next' }).waitFor();

  // The provider would let them in again without a word.
  await profile.context.clearCookies({ domain: '127.0.0.1' });
  await page.goto(`${url}/.tunnel/logout`);
  expect(await findingsOf(page)).toEqual([]);
  const before = visits.length;
  await page.getByRole('button').click();
  await page.getByLabel('Email').waitFor();
  expect((await profile.context.cookies(url)).filter(({ name }) => name.endsWith('tunnel_login'))).toEqual([]);
  expect(visits).toHaveLength(before);
});

it('two tabs log in at once, and each comes back to its own page', async ({ profile, harness, stack }) => {
  const { url, visits } = await openGuarded(harness, stack, profile, 'two-tabs');
  const [one, two] = [await profile.context.newPage(), await profile.context.newPage()];
  await Promise.all([one.goto(`${url}/one?tab=1`), two.goto(`${url}/two?tab=2`)]);
  await signIn(one, PERSON);
  await one.getByRole('heading', { name: '/one' }).waitFor();
  await signIn(two, PERSON);
  await two.getByRole('heading', { name: '/two' }).waitFor();
  expect([one.url(), two.url()]).toEqual([`${url}/one?tab=1`, `${url}/two?tab=2`]);
  expect(visits.map(({ path, user }) => [path, user])).toEqual([
    ['/one?tab=1', PERSON],
    ['/two?tab=2', PERSON],
  ]);
});

it('a person who is not on the list reads as whom they are signed in, can log out, and never reaches the service', async ({
  profile,
  harness,
  stack,
}) => {
  const { url, visits } = await openGuarded(harness, stack, profile, 'refused');
  const page = await profile.context.newPage();
  await page.goto(`${url}/`);
  await signIn(page, STRANGER);
  await page.getByText(STRANGER).first().waitFor();
  expect(new URL(page.url()).host).toBe(new URL(url).host);
  expect(await page.locator('a[href*="/.tunnel/logout"], form[action*="/.tunnel/logout"]').count()).toBeGreaterThan(0);
  expect((await page.reload())?.status()).toBe(403);
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  }
  expect(await findingsOf(page)).toEqual([]);
  expect(visits).toEqual([]);
});

it('an address that the provider has not verified is nobody’s', async ({ profile, harness, stack }) => {
  const { url, visits } = await openGuarded(harness, stack, profile, 'unverified');
  const page = await profile.context.newPage();
  await page.goto(`${url}/`);
  await signIn(page, `unverified-${PERSON}`);
  await page.waitForURL((at) => at.host === new URL(url).host);
  expect((await page.reload())?.status()).toBe(403);
  expect(visits).toEqual([]);
});
