// Sign-up on a server that requires an invitation, and on a closed server.
import { expect } from 'vitest';
import { serverCommand } from '../system/server-command.fixture.ts';
import { mailedPath, newAddress, PASSWORD } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { startOwnStack } from './own-stack.fixture.ts';
import { Profile } from './profile.fixture.ts';

it('an invited person signs up with the link, which works once; without an invitation there is no sign-up form', async ({
  browser,
  harness,
}) => {
  const { stack } = harness.use(await startOwnStack({ platform: 'sign_up = "invite"' }));
  const profile = harness.use(await Profile.open(browser, stack));
  const page = await profile.tab('/signup');
  await page.getByRole('heading', { name: 'Sign-up is by invitation' }).waitFor();
  expect(await page.getByRole('textbox').count()).toBe(0);

  const email = newAddress('invited');
  await serverCommand(stack, 'admin', 'invite', email);
  const link = (await mailedPath(stack, email, '/app/signup')).slice('/app'.length);
  await page.goto(profile.urlOf(link));
  await page.getByText('Your invitation is for this address').waitFor();
  expect(page.url()).not.toContain('invite=');
  await page.reload();
  await page.getByText('Your invitation is for this address').waitFor();
  expect(await page.getByLabel('Email').inputValue()).toBe(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  // The invitation has verified the email address.
  await page.getByRole('heading', { name: 'Get started', level: 1 }).waitFor();

  const another = harness.use(await Profile.open(browser, stack));
  const late = await another.tab(link);
  await late.getByRole('heading', { name: 'This invitation is no longer valid' }).waitFor();
  const closed = { sign_up: 'closed', invite_valid: false, invited_email: null };
  await late.route('**/auth/sign-up*', (route) => route.fulfill({ json: closed }));
  await late.goto(another.urlOf('/login'));
  await late.getByRole('link', { name: 'Create an account' }).click();
  await late.getByRole('heading', { name: 'Sign-up is closed' }).waitFor();
  expect([...profile.faults, ...another.faults]).toEqual([]);
});
