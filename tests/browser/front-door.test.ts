// The pages before sign-in.
import { expect } from 'vitest';
import { Account, mailedPath, PASSWORD } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('a forgotten password is replaced with the mailed link, which works once', async ({ profile, stack }) => {
  const { email } = await Account.signUp(stack);
  const page = await profile.tab('/login');
  await page.getByRole('link', { name: 'Forgot password?' }).click();
  // The heading identifies the page, because the previous page has a field of the same name.
  await page.getByRole('heading', { name: 'Reset your password' }).waitFor();
  // Without an address no mail can be sent. The page reports that, because the API gives the same answer to every address.
  await page.getByRole('button', { name: 'Send link' }).click();
  await page.getByText("Enter your account's email address.").waitFor();
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
  // The token is not in the URL, so it appears neither on the screen nor in the browser history.
  expect(page.url()).not.toContain('token=');

  await page.getByRole('link', { name: 'Sign in' }).click();
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Password', { exact: true }).fill('another battery staple');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation').waitFor();

  const again = await profile.tab(link);
  await again.getByLabel('New password').fill('a third battery staple');
  await again.getByRole('button', { name: 'Change password' }).click();
  await again.getByRole('link', { name: 'Get a new link' }).waitFor();
});

it('sign-up with an address in use shows an error at the field, and an unverified account can request the mail again', async ({
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
  await page.getByRole('link', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(await page.getByLabel('Email').inputValue()).toBe(`new-${email}`);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('link', { name: 'Resend email' }).click();
  await page.getByText(`new-${email}`).waitFor();
});

it('the pages before sign-in request no session and write nothing to the console', async ({ profile }) => {
  const [asked, said]: [string[], string[]] = [[], []];
  profile.context.on('request', (request) => {
    if (new URL(request.url()).pathname.startsWith('/auth/')) asked.push(request.url());
  });
  profile.context.on('console', (message) => said.push(message.text()));
  for (const path of ['/login', '/signup', '/forgot-password', '/']) {
    const page = await profile.tab(path);
    await page.getByRole('heading', { level: 1 }).waitFor();
  }
  expect([asked.filter((url) => url.endsWith('/refresh')), said]).toEqual([[], []]);
});
