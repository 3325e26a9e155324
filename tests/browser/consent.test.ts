// Access for an app: the request, sign-in, consent and return to the app.
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { ConnectingApp } from './connecting-app.fixture.ts';
import { logInAt } from './profile.fixture.ts';

it('a denial returns to the app, even after switching accounts, and an answered request shows as expired', async ({
  harness,
  profile,
  stack,
}) => {
  const one = await Account.signUp(stack, 'one');
  const other = await Account.signUp(stack, 'other');
  const app = await ConnectingApp.start(harness, stack);
  profile.allowHostOf(`http://${app.host}`);
  await profile.logIn(one.email);
  const path = `/consent?request=${await app.request('requests:replay')}`;
  const page = await profile.tab(path);
  await page.getByText(one.email).waitFor();
  expect(await page.getByRole('checkbox').count()).toBe(1);
  await page.getByRole('button', { name: 'Use another account' }).click();
  await logInAt(page, other.email);
  await page.getByText(other.email).waitFor();
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByText('Welcome back').waitFor();
  expect((await app.answer()).get('error')).toBe('access_denied');
  expect(await other.get('/oauth/grants')).toEqual({ grants: [] });

  // An app registered by the operator: its id is not a URL, and the operator has checked its name.
  const registered = { client_id: 'client_4fK2mQ9xVbT7RsLpZ0aE', client_host: 'Acme IDE', client_name: 'Acme IDE' };
  await page.route('**/oauth/requests/*', (route) =>
    route.fulfill({
      json: {
        id: 'ask_4fK2mQ9xVbT7RsLpZ0aE',
        ...registered,
        redirect_host: 'ide.example.com',
        scopes: ['tunnels:read'],
        expires_at: new Date(Date.now() + 60_000).toISOString(),
      },
    }),
  );
  await page.goto(profile.urlOf('/consent?request=ask_4fK2mQ9xVbT7RsLpZ0aE'));
  await page.getByRole('heading', { name: 'Acme IDE', level: 1 }).waitFor();
  await page.getByText('Registered by the operator of this server.').waitFor();
  expect(await page.getByText('App ID').count()).toBe(0);
  await page.unrouteAll();

  for (const over of [path, '/consent?request=x', '/consent']) {
    await page.goto(profile.urlOf(over));
    await page.getByRole('heading', { name: 'This request has expired', level: 1 }).waitFor();
  }
});
