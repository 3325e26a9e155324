// Visitors sign in to a tunnel in a real browser at a real provider: each returns to the requested page, and other people are rejected.
import { expect } from 'vitest';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { openGuarded, PERSON, STRANGER, signIn } from './guarded-tunnel.fixture.ts';

it('two tabs that sign in at the same time each return to their own page', async ({ profile, harness, stack }) => {
  const { url, visits } = await openGuarded(harness, stack, profile, 'two-tabs');
  const one = await profile.context.newPage();
  const two = await profile.context.newPage();
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

it('a rejected visitor gets a 403 with the account name and a sign-out button, and never reaches the service', async ({
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

it('a sign-in with an email address that the provider has not verified gets a 403', async ({
  profile,
  harness,
  stack,
}) => {
  const { url, visits } = await openGuarded(harness, stack, profile, 'unverified');
  const page = await profile.context.newPage();
  await page.goto(`${url}/`);
  await signIn(page, `unverified-${PERSON}`);
  await page.waitForURL((at) => at.host === new URL(url).host);
  expect((await page.reload())?.status()).toBe(403);
  expect(visits).toEqual([]);
});
