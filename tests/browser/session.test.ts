// Sessions that end during use, and sessions in several tabs.
import { expect } from 'vitest';
import { Account, ask, mailedPath } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { logInAt } from './profile.fixture.ts';

const NEW_PASSWORD = 'another battery staple';

it('a session that ends during use leads to sign-in, and from there back to the same page', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'ended');
  await profile.logIn(account.email);
  const page = await profile.tab('/tunnels?state=closed');
  await page.getByRole('heading', { name: 'Tunnels', level: 1 }).waitFor();
  // A new password ends every session of the account, including its access tokens.
  await ask(stack, '/auth/forgot-password', { body: { email: account.email } });
  const token = new URL(await mailedPath(stack, account.email, '/app/reset-password'), 'http://x').searchParams.get(
    'token',
  );
  await ask(stack, '/auth/reset-password', { body: { token, password: NEW_PASSWORD } });

  await page.getByText('Your session has ended. Sign in to continue.').waitFor();
  expect(new URL(page.url()).searchParams.get('next')).toBe('/app/tunnels?state=closed');
  expect(await page.getByRole('navigation').count()).toBe(0);
  await logInAt(page, account.email, NEW_PASSWORD);
  await page.getByRole('heading', { name: 'Tunnels', level: 1 }).waitFor();
  expect(page.url()).toBe(profile.urlOf('/tunnels?state=closed'));
  expect(await page.getByRole('radio', { name: 'Ended' }).isChecked()).toBe(true);
});

it('an expired access token is renewed automatically without an error on the page', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'renewed');
  await profile.logIn(account.email);
  const page = await profile.tab('/settings');
  await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor();
  let refused = 0;
  let renewed = 0;
  await page.route('**/keys', async (route) => {
    if (route.request().method() !== 'POST' || refused > 0) return route.fallback();
    refused += 1;
    return route.fulfill({
      status: 401,
      json: { error: 'the access token has run out', code: 'ACCESS_TOKEN_INVALID' },
    });
  });
  page.on('request', (request) => {
    if (request.url().endsWith('/auth/refresh')) renewed += 1;
  });
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('button', { name: 'Create key' }).first().click();
  await page.getByRole('dialog').getByLabel('Label').fill('renewed');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByText(/^tnl_/).first().waitFor();
  expect([refused, renewed]).toEqual([1, 1]);
});

it('two tabs share a session: sign-out and sign-in apply to both, and simultaneous renewals keep both signed in', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'tabs');
  await profile.logIn(account.email);
  const one = await profile.tab('/keys');
  const two = await profile.tab('/settings');
  for (const tab of [one, two]) await tab.getByRole('navigation').waitFor();
  for (let times = 0; times < 3; times += 1) {
    await Promise.all([one.reload(), two.reload()]);
    await Promise.all([one, two].map((tab) => tab.getByRole('navigation').waitFor()));
  }

  await two.getByRole('button', { name: 'Sign out', exact: true }).last().click();
  for (const tab of [one, two]) await tab.getByText("You're signed out.").waitFor();
  expect(await profile.context.cookies(`${stack.run.platform_url}/auth/refresh`)).toEqual([]);
  await logInAt(one, account.email);
  await one.getByRole('navigation').waitFor();
  await two.getByRole('navigation').waitFor();
});
