// An unreachable platform: the page shows a banner, keeps its content, and recovers automatically.
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { startOwnStack } from './own-stack.fixture.ts';
import { Profile } from './profile.fixture.ts';

const BANNER = "Can't reach the platform.";

it('a browser that is offline shows the banner, and loads the pages again when it is online', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'offline');
  await account.newKey('laptop');
  await profile.logIn(account.email);
  profile.allowAbsence();
  const page = await profile.tab('/keys');
  await page.getByRole('row', { name: 'laptop' }).waitFor();
  await profile.context.setOffline(true);
  await page.getByRole('button', { name: 'Revoke laptop' }).click();
  await page.getByRole('button', { name: 'Revoke key' }).click();
  await page.getByText(BANNER).waitFor();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  // A page that has not been loaded yet cannot load either.
  await page.getByRole('link', { name: 'Groups' }).click();
  await page.getByText(BANNER).waitFor();

  await profile.context.setOffline(false);
  await page.getByText(BANNER).waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'Groups', level: 1 }).waitFor();
  await page.getByText('No groups yet').waitFor();
  await page.getByRole('navigation').getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('row', { name: 'laptop' }).waitFor();
});

it('an open page shows the banner while the platform restarts, and recovers afterwards', async ({
  browser,
  harness,
}) => {
  const { stack } = harness.use(await startOwnStack({ fixedPorts: true }));
  const account = await Account.signUp(stack, 'restart');
  const profile = await Profile.open(browser, stack);
  harness.use(profile);
  profile.allowAbsence();
  await profile.logIn(account.email);
  const page = await profile.tab('/pools');
  await page.getByText('No groups yet').waitFor();
  await stack.stop();
  await page.getByText(BANNER).waitFor();
  expect(await page.getByText('No groups yet').isVisible()).toBe(true);

  await stack.start();
  await page.getByText(BANNER).waitFor({ state: 'detached' });
  await page.getByRole('navigation').getByRole('link', { name: 'Keys' }).click();
  await page.getByText('No keys yet').waitFor();
  expect(profile.faults).toEqual([]);
});
