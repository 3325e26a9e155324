// An app that asks for access: from its request over the login and the consent back to it, and until it is disconnected.
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { Account, PASSWORD } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { ConnectingApp } from './connecting-app.fixture.ts';

const logInAt = async (page: Page, email: string): Promise<void> => {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
};

/** The host is what anybody can know of an app; its name is its own choice. */
const HOST_IS_LARGER = `(() => {
  const sizeOf = (selector) => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize);
  return sizeOf('h1 span:last-child') > sizeOf('bdi');
})()`;

it('an app asks, its user logs in, allows less than was asked, and disconnects it in the settings', async ({
  harness,
  profile,
  stack,
}) => {
  const [account, app] = [await Account.signUp(stack, 'consent'), await ConnectingApp.start(harness, stack)];
  profile.allowHostOf(`http://${app.host}`);
  const page = await profile.context.newPage();
  await page.goto(await app.authorizeUrl());
  await page.getByText('Log in to continue.').waitFor();
  await logInAt(page, account.email);

  const allow = page.getByRole('button', { name: 'Allow' });
  await page.getByRole('heading', { name: app.host, level: 1 }).waitFor();
  await page.getByText(account.email).waitFor();
  await page.getByText('It calls itself “Example Assistant”.').waitFor();
  expect(await page.evaluate(HOST_IS_LARGER)).toBe(true);
  await page.getByText(`${app.host}, this computer`).waitFor();
  // Nothing is pressed by who still types.
  expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
  for (const box of await page.getByRole('checkbox').all()) await box.uncheck();
  await page.getByText('Choose at least one, or deny.').waitFor();
  expect(await allow.isDisabled()).toBe(true);
  for (const name of ['See your tunnels', 'Read captured requests']) await page.getByRole('checkbox', { name }).check();

  // A page is left for another page alone: what would run as a script is an error, and the question stays.
  const asked = page.url();
  await page.route('**/decision', (route) =>
    route.fulfill({ json: { redirect_to: 'javascript:document.title="run"' } }),
  );
  await allow.click();
  await page.getByRole('alert').waitFor();
  expect([page.url(), await page.title()]).toEqual([asked, `Connect ${app.host} · Tunnel`]);
  await page.unrouteAll();
  await allow.click();
  await page.getByText('Welcome back').waitFor();

  const answer = await app.answer();
  expect(Object.fromEntries(answer)).toEqual({
    code: expect.stringMatching(/./),
    state: 'as sent',
    iss: expect.stringMatching(/^http/),
  });
  const tokens = await app.redeem(answer.get('code') ?? '');
  expect(tokens.scope).toBe('tunnels:read requests:read');

  await page.goto(profile.urlOf('/settings'));
  const row = page.getByRole('row', { name: app.host });
  await row.getByText('Read captured requests').waitFor();
  expect(await row.getByText('Close tunnels').count()).toBe(0);
  await row.getByRole('button', { name: 'Disconnect' }).click();
  const question = page.getByRole('dialog', { name: `Disconnect ${app.host}?` });
  await question.getByRole('button', { name: 'Disconnect' }).click();
  await row.waitFor({ state: 'detached' });
  await page.getByText('Add this URL to an MCP host').waitFor();
  await expect(app.refresh(tokens.refresh_token)).rejects.toThrow('invalid_grant');
});

it('a no goes back to the app, by another account too, and a request that was answered is over', async ({
  harness,
  profile,
  stack,
}) => {
  const [one, other] = [await Account.signUp(stack, 'one'), await Account.signUp(stack, 'other')];
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

  // One that the operator registered: its id is no address, and its name was checked by somebody.
  const registered = { client_id: 'client_4fK2mQ9xVbT7RsLpZ0aE', client_host: 'Acme IDE', client_name: 'Acme IDE' };
  await page.route('**/oauth/requests/*', (route) =>
    route.fulfill({
      json: {
        ...{ id: 'ask_4fK2mQ9xVbT7RsLpZ0aE', ...registered, redirect_host: 'ide.example.com' },
        ...{ scopes: ['tunnels:read'], expires_at: new Date(Date.now() + 60_000).toISOString() },
      },
    }),
  );
  await page.goto(profile.urlOf('/consent?request=ask_4fK2mQ9xVbT7RsLpZ0aE'));
  await page.getByRole('heading', { name: 'Acme IDE', level: 1 }).waitFor();
  await page.getByText('Registered by whoever runs this server.').waitFor();
  expect(await page.getByText('App ID').count()).toBe(0);
  await page.unrouteAll();

  for (const over of [path, '/consent?request=x', '/consent']) {
    await page.goto(profile.urlOf(over));
    await page.getByRole('heading', { name: 'This request is over', level: 1 }).waitFor();
  }
});
