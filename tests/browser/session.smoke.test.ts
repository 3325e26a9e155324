// A page that requires a session leads to sign-in, and from there to the page.
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { logInAt } from './profile.fixture.ts';

it('sign-in returns to the dashboard page that was requested, and never to a URL outside the dashboard', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'next');
  const page = await profile.context.newPage();
  // Simulates a slow platform: the page is already waiting when the missing session becomes known.
  const isWaiting = page.getByRole('status').filter({ hasText: 'Loading' });
  await page.route('**/auth/refresh', async (route) => {
    await isWaiting.waitFor();
    await route.fallback();
  });
  await page.goto(profile.urlOf('/keys'));
  await page.getByText('Sign in to continue.').waitFor();
  await page.unrouteAll();
  await logInAt(page, account.email);
  await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor();

  for (const next of ['https://example.com/', '//example.com/app/', '/auth/logout']) {
    await page.goto(profile.urlOf(`/login?next=${encodeURIComponent(next)}`));
    await page.getByRole('navigation').waitFor();
    expect(new URL(page.url()).pathname, next).toBe('/app/');
  }
});
