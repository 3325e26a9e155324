// Access for an app: the request, sign-in, consent, return to the app, and the disconnection in the settings.
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { ConnectingApp } from './connecting-app.fixture.ts';
import { logInAt } from './profile.fixture.ts';

/**
 * Script that compares font sizes. The host must be larger than the name, because only the host is verified; an app chooses its name
 * freely.
 */
const HOST_IS_LARGER = `(() => {
  const sizeOf = (selector) => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize);
  return sizeOf('h1 span:last-child') > sizeOf('bdi');
})()`;

it('a user signs in for an app, allows fewer permissions than requested, and disconnects the app in the settings', async ({
  harness,
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'consent');
  const app = await ConnectingApp.start(harness, stack);
  profile.allowHostOf(`http://${app.host}`);
  const page = await profile.context.newPage();
  await page.goto(await app.authorizeUrl());
  await page.getByText('Sign in to continue.').waitFor();
  await logInAt(page, account.email);

  const allow = page.getByRole('button', { name: 'Allow' });
  await page.getByRole('heading', { name: app.host, level: 1 }).waitFor();
  await page.getByText(account.email).waitFor();
  await page.getByText('The app calls itself “Example Assistant”.').waitFor();
  expect(await page.evaluate(HOST_IS_LARGER)).toBe(true);
  await page.getByText(`${app.host}, this computer`).waitFor();
  // The focus is on the heading, so that a user who is still typing presses no button.
  expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
  for (const box of await page.getByRole('checkbox').all()) await box.uncheck();
  await page.getByText('Choose at least one permission, or deny access.').waitFor();
  expect(await allow.isDisabled()).toBe(true);
  for (const name of ['See your tunnels', 'Read captured requests']) await page.getByRole('checkbox', { name }).check();

  // The page may only navigate to another page. A javascript: URL is an error, and the consent question remains.
  const asked = page.url();
  await page.route('**/decision', (route) =>
    route.fulfill({ json: { redirect_to: 'javascript:document.title="run"' } }),
  );
  await allow.click();
  await page.getByRole('alert').waitFor();
  expect([page.url(), await page.title()]).toEqual([asked, `Connect ${app.host} · Hatchway`]);
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
