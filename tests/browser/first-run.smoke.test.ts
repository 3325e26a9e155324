// The introduction for a new account, from sign-up to the first request, with the commands that the pages show.
import { claimPortBlock, eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { mailedPath, newAddress, PASSWORD } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { commandIn, paste } from './pasted-command.fixture.ts';

it('a new user signs up, runs the three commands shown, sees each step completed, and replays the first request', async ({
  profile,
  harness,
  stack,
}) => {
  const email = newAddress('new');
  const page = await profile.tab('/signup');
  await page.getByLabel('Name').fill('Nia New');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('heading', { name: 'Check your email' }).waitFor();
  await page.goto(stack.run.platform_url + (await mailedPath(stack, email, '/auth/verify-email/')));
  // The browser that registered the account is signed in without a second password prompt.

  const step = (number: number, isDone: boolean) => page.locator(`[data-step="${number}"][data-done="${isDone}"]`);
  for (const number of [1, 2, 3]) await step(number, false).waitFor();
  const home = await harness.folder();
  const ports = harness.use(await claimPortBlock());
  // The default port 3000 is the same for all tests, so the test enters a different port, like users with a running app.
  await page.getByLabel('Already have an app on a port?').fill(String(ports.from));

  // At a terminal, the command would ask for the password.
  const copy = page.getByRole('button', { name: 'Copy the sign-in command' });
  const logIn = await commandIn(step(1, false).locator('div', { has: copy }).last());
  const loggingIn = await paste(harness, `echo '${PASSWORD}' | ${logIn} --password-stdin`, home);
  expect(await loggingIn.waitForExit({ timeoutMs: 60_000 }), loggingIn.stderr.join('\n')).toMatchObject({ code: 0 });
  await step(1, true).waitFor();

  await paste(harness, await commandIn(step(2, false)), home);
  await eventually(async () => expect((await fetch(`http://127.0.0.1:${ports.from}/`)).status).toBe(200));
  const tunnel = await paste(harness, await commandIn(step(3, false)), home);
  await step(3, true).waitFor();
  // The introduction stays until the first request, even after a reload.
  await page.reload();
  await step(3, true).waitFor();
  await page.getByText('Open the URL to send the first request.').waitFor();
  const link = page.getByRole('link', { name: /^Open https?:/ });
  const address = (await link.getAttribute('href')) ?? '';
  profile.allowHostOf(address);
  const [visit] = await Promise.all([profile.context.waitForEvent('page'), link.click()]);
  await visit.getByText('Hello from my machine').waitFor();
  await visit.close();
  await step(2, true).waitFor();
  await page.getByText('Your first request arrived.').waitFor();

  await page.getByRole('link', { name: 'View the request' }).click();
  await page.locator('[data-request]', { hasText: 'GET/' }).last().click();
  await page.getByRole('heading', { name: 'GET /', level: 3 }).waitFor();
  await page.getByText('Hello from my machine').waitFor();
  await page.getByRole('button', { name: 'Replay', exact: true }).click();
  // The page shows the new request.
  await page.getByText(/^Replayed: 200 in /).waitFor();

  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  expect(tunnel.exit).toBeNull();
});
