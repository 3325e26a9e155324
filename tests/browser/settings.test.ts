// The account and this browser.
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('a name is kept, a theme is there before the first paint and in every tab, other sessions are ended', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'settings');
  await profile.logIn(account.email);
  const page = await profile.tab('/settings');
  await page.getByLabel('Name', { exact: true }).fill('Ann of the test');
  await page.getByRole('button', { name: 'Save name' }).click();
  await page.getByText('Saved.').waitFor();
  await page.getByRole('button', { name: 'Account of Ann of the test' }).waitFor();

  const other = await profile.tab('/keys');
  await page.getByRole('radio', { name: 'Dark' }).click();
  const colour = 'getComputedStyle(document.body).backgroundColor';
  const dark = await page.evaluate(colour);
  await other.reload();
  expect(await other.evaluate(colour)).toBe(dark);
  await page.getByRole('radio', { name: 'Light' }).click();
  expect(await page.evaluate(colour)).not.toBe(dark);

  // The sign-up itself logged in, too.
  await page.getByRole('row').nth(2).waitFor();
  await page.getByRole('button', { name: 'End all others' }).click();
  await page.getByRole('row').nth(2).waitFor({ state: 'detached' });
  await page.getByText('This one').waitFor();
  await page.reload();
  await page.getByText('This one').waitFor();
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Ann of the test');
});
