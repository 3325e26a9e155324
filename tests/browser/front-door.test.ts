// The pages before sign-in.
import { expect } from 'vitest';
import { Account, mailedPath, PASSWORD } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('a wrong password is told at its field, without the id of a request, and the right one goes on', async ({
  profile,
  stack,
}) => {
  const { email } = await Account.signUp(stack);
  const page = await profile.tab('/login');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill('not the password');
  await page.getByRole('button', { name: 'Log in' }).click();
  const alert = page.getByRole('alert');
  await alert.waitFor();
  expect(await alert.textContent()).toMatch(/password/i);
  expect(await page.getByLabel('Password', { exact: true }).getAttribute('aria-invalid')).toBe('true');
  // It says itself what to do; nobody has to look anything up.
  expect(await page.getByText(/^Request/).count()).toBe(0);
  expect(await page.getByLabel('Email').inputValue()).toBe(email);

  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByRole('navigation').waitFor();
  expect(new URL(page.url()).pathname).toBe('/app/');
});

it('a forgotten password is replaced by the mailed link, which works once', async ({ profile, stack }) => {
  const { email } = await Account.signUp(stack);
  const page = await profile.tab('/login');
  await page.getByRole('link', { name: 'Forgot password?' }).click();
  await page.getByLabel('Email').fill(email);
  await page.getByRole('button', { name: 'Send link' }).click();
  await page.getByRole('heading', { name: 'Check your email' }).waitFor();

  const link = (await mailedPath(stack, email, '/app/reset-password')).slice('/app'.length);
  await page.goto(profile.urlOf(link));
  await page.getByLabel('New password').fill('short');
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('New password').fill('another battery staple');
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByRole('heading', { name: 'Password changed' }).waitFor();
  // Who looks over a shoulder, or into the history, finds no token.
  expect(page.url()).not.toContain('token=');

  await page.getByRole('link', { name: 'Log in' }).click();
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Password', { exact: true }).fill('another battery staple');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('navigation').waitFor();

  const again = await profile.tab(link);
  await again.getByLabel('New password').fill('a third battery staple');
  await again.getByRole('button', { name: 'Change password' }).click();
  await again.getByRole('link', { name: 'Get a new link' }).waitFor();
});

it('an address that is taken is told at its field; an unverified one can have its mail again', async ({
  profile,
  stack,
}) => {
  const { email } = await Account.signUp(stack);
  const page = await profile.tab('/signup');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('alert').waitFor();
  expect(await page.getByLabel('Email').getAttribute('aria-invalid')).toBe('true');

  await page.getByLabel('Email').fill(`new-${email}`);
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('heading', { name: 'Check your email' }).waitFor();
  await page.getByRole('link', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  expect(await page.getByLabel('Email').inputValue()).toBe(`new-${email}`);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('link', { name: 'Resend email' }).click();
  await page.getByText(`new-${email}`).waitFor();
});
