// The sign-in page.
import { expect } from 'vitest';
import { Account, PASSWORD } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('a wrong password shows an error at its field without a request id, and the correct password signs in', async ({
  profile,
  stack,
}) => {
  const { email } = await Account.signUp(stack);
  const page = await profile.tab('/login');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill('not the password');
  await page.getByRole('button', { name: 'Sign in' }).click();
  const alert = page.getByRole('alert');
  await alert.waitFor();
  expect(await alert.textContent()).toMatch(/password/i);
  expect(await page.getByLabel('Password', { exact: true }).getAttribute('aria-invalid')).toBe('true');
  // The error message says what to do, so no request id is shown for support.
  expect(await page.getByText(/^Request/).count()).toBe(0);
  expect(await page.getByLabel('Email').inputValue()).toBe(email);

  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByRole('navigation').waitFor();
  expect(new URL(page.url()).pathname).toBe('/app/');
});
