// The introduction for a new account, skipped and started again.
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('a skipped introduction stays skipped, shows the empty state, and can be started again', async ({
  profile,
  stack,
}) => {
  const { email } = await Account.signUp(stack, 'skips');
  await profile.logIn(email);
  const page = await profile.tab('/');
  await page.getByRole('button', { name: 'Skip' }).click();
  await page.reload();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  await page.getByText('No tunnels yet').waitFor();
  expect(await page.getByText('Requests per day').count()).toBe(0);
  await page.getByRole('button', { name: 'Get started' }).click();
  await page.getByLabel('Already have an app on a port?').fill('70000');
  await page.getByText('Use a port from 1 to 65535').waitFor();
  await page.getByLabel('Already have an app on a port?').fill('8080');
  await page.getByText('tunnel http 8080').waitFor();

  // A public server with simulated payments has no billing page.
  const places = page.getByRole('navigation').getByRole('link');
  expect(await places.count()).toBe(8);
  await page.route('**/billing', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...((await answer.json()) as object), hidden: true } });
  });
  await page.reload();
  await page.getByRole('link', { name: 'Settings' }).waitFor();
  // The link is hidden until the billing status is known, and is then removed.
  await page.locator('nav a[href="/app/billing"]').waitFor({ state: 'detached' });
  expect(await places.count()).toBe(7);
});

it('offers to install the client from the server, in the words of the own system, only where the server has files', async ({
  profile,
  stack,
}) => {
  const { email } = await Account.signUp(stack, 'installs');
  await profile.logIn(email);
  const page = await profile.tab('/');
  await page.getByText('npm run build && npm install --global ./apps/cli').waitFor();
  await page.route('**/install.sh', (route) =>
    route.fulfill({ status: 200, headers: { 'x-tunnel-client-version': '1.2.3' }, body: '' }),
  );
  await page.reload();
  await page.getByText(`curl -fsSL ${new URL(page.url()).origin}/install | sh`).waitFor();
  expect(await page.getByText('npm run build').count()).toBe(0);
  await page.getByRole('link', { name: 'Other ways to install' }).click();
  await page.getByRole('heading', { name: 'Install the client' }).waitFor();
  await page.getByText('The operator of this server has put no files here.').waitFor();
});
