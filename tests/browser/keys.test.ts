// The dialog that creates a key.
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('the key dialog has focus in the label, and stays open while the key is being created', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'slow');
  await profile.logIn(account.email);
  const page = await profile.tab('/keys');
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route('**/keys', async (route) => {
    if (route.request().method() === 'POST') await answered;
    await route.fallback();
  });
  await page.getByRole('button', { name: 'Create key' }).first().click();
  await page.getByRole('dialog').waitFor();
  await page.keyboard.type('laptop');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).and(page.locator('[aria-busy]')).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  expect(await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true);
  answer();
  await page.getByRole('dialog', { name: 'laptop' }).getByText(/^tnl_/).first().waitFor();
});

it('a rejected label keeps the dialog open and shows the API error with the request id', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'refused');
  await profile.logIn(account.email);
  const page = await profile.tab('/keys');
  await page.route('**/keys', (route) =>
    route.request().method() === 'POST'
      ? route.fulfill({
          status: 429,
          json: { error: 'too many keys for now', code: 'RATE_LIMITED', request_id: 'req_of_the_test' },
        })
      : route.fallback(),
  );
  await page.getByRole('button', { name: 'Create key' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Create key' }).click();
  await dialog.getByText('Enter a label').waitFor();
  await dialog.getByLabel('Label').fill('laptop');
  await dialog.getByRole('button', { name: 'Create key' }).click();
  await dialog.getByText(/too many keys for now/i).waitFor();
  await dialog.getByText('req_of_the_test').waitFor();
});
