// Settings of the account and of the browser.
import { expect } from 'vitest';
import { Account, ask, mailedPath, newAddress, PASSWORD } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { Profile } from './profile.fixture.ts';

const NEW_PASSWORD = 'another battery staple';

it('settings save the name, apply the theme in every tab, and sign out other devices after confirmation', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'settings');
  await profile.logIn(account.email);
  const page = await profile.tab('/settings');
  await page.getByLabel('Display name').fill('Ann of the test');
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

  // The sign-up created a session as well.
  await page.getByRole('row').nth(2).waitFor();
  const question = page.getByRole('dialog', { name: 'Sign out of 1 other device?' });
  await page.getByRole('button', { name: 'Sign out everywhere else' }).click();
  await question.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('row').nth(2).waitFor();
  await page.getByRole('button', { name: 'Sign out everywhere else' }).click();
  await question.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Signed out of 1 device.').waitFor();
  await page.getByRole('row').nth(2).waitFor({ state: 'detached' });
  await page.reload();
  await page.getByText('Current').waitFor();
  expect(await page.getByLabel('Display name').inputValue()).toBe('Ann of the test');
});

it('a password change signs out other devices, which must use the new password', async ({
  browser,
  harness,
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'password');
  await profile.logIn(account.email);
  const elsewhere = await Profile.open(browser, stack);
  harness.use(elsewhere);
  await elsewhere.logIn(account.email);
  const page = await profile.tab('/settings');
  const other = await elsewhere.tab('/');
  await other.getByRole('navigation').waitFor();
  let tries = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/auth/password')) tries += 1;
  });

  await page.getByRole('button', { name: 'Change password' }).click();
  const dialog = page.getByRole('dialog', { name: 'Change password' });
  await dialog.getByLabel('Current password').fill('not the password');
  await dialog.getByLabel('New password').fill(NEW_PASSWORD);
  await page.keyboard.press('Enter');
  await dialog.getByRole('alert').waitFor();
  expect(await dialog.getByLabel('Current password').getAttribute('aria-invalid')).toBe('true');
  // A rejected password is not an expired session, so the request is not repeated.
  expect(tries).toBe(1);
  await dialog.getByLabel('Current password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  // The session from the sign-up counts as a further device.
  await page.getByText('Password changed. Signed out of 2 other devices.').waitFor();

  await other.getByText('Your session has ended. Sign in to continue.').waitFor();
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByText('No keys yet').waitFor();
  await other.getByLabel('Email').fill(account.email);
  await other.getByLabel('Password', { exact: true }).fill(NEW_PASSWORD);
  await other.getByRole('button', { name: 'Sign in' }).click();
  await other.getByRole('navigation').waitFor();
  expect(elsewhere.faults).toEqual([]);
});

it('an email change takes effect with the mailed link, and the page does not reveal if the address is in use', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'address');
  const taken = await Account.signUp(stack, 'taken');
  await profile.logIn(account.email);
  const page = await profile.tab('/settings');
  const change = async (address: string): Promise<void> => {
    await page.getByRole('button', { name: 'Change email' }).click();
    const dialog = page.getByRole('dialog', { name: 'Change email' });
    await dialog.getByLabel('Current password').fill(PASSWORD);
    await dialog.getByLabel('New email').fill(address);
    await page.keyboard.press('Enter');
    await page.getByText(`We sent a link to ${address}.`).waitFor();
  };
  await change(taken.email);
  const wanted = newAddress('moved');
  await change(wanted);
  await page.getByText(account.email).waitFor();

  await page.goto(stack.run.platform_url + (await mailedPath(stack, wanted, '/auth/verify-email/')));
  const next = await profile.tab('/settings');
  await next.getByText(wanted).waitFor();
});

it('an account is deleted after its password is confirmed, and every tab is signed out', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'gone');
  await profile.logIn(account.email);
  const page = await profile.tab('/settings');
  const other = await profile.tab('/keys');
  await other.getByText('No keys yet').waitFor();
  await page.getByRole('button', { name: 'Delete account' }).click();
  const question = page.getByRole('dialog', { name: 'Delete your account?' });
  await question.getByText(account.email).waitFor();
  await question.getByLabel('Current password').fill('not the password');
  await page.keyboard.press('Enter');
  await question.getByRole('alert').waitFor();
  await question.getByLabel('Current password').fill(PASSWORD);
  await question.getByRole('button', { name: 'Delete account' }).click();
  await page.getByText('Your account has been deleted.').waitFor();
  await other.getByRole('heading', { name: 'Sign in' }).waitFor();
  const body = { email: account.email, password: PASSWORD };
  await expect(ask(stack, '/auth/login', { body })).rejects.toThrow('401');
});
