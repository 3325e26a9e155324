// Payment with the simulated processor of the default setup: a card, a subscription, and a cap that closes tunnels.
import { expect } from 'vitest';
import { askHttp, endpointOf, startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';

it('an account subscribes with a card at the payment processor, and a spend limit of 0 closes the tunnel with exit 6', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'payer');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const open = () =>
    harness.run(['http', String(web.port), '--json', '--server', stack.control], {
      env: { TUNNEL_API_KEY: key.token },
    });
  const tunnel = await open();
  // After a first request, the overview no longer shows the introduction.
  await askHttp(endpointOf((await tunnel.ready()).public_url));
  await profile.logIn(account.email);
  const page = await profile.tab('/billing');
  await page.getByText('None on file').waitFor();
  await page.getByText('Usage is free on your plan').waitFor();
  await page.getByText('Test mode.').waitFor();

  profile.allowHostOf(stack.run.simulator_url);
  const dialog = page.getByRole('dialog');
  const leaveForCard = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Subscribe' }).click();
    await dialog.getByText('$0.10 per GB').waitFor();
    await dialog.getByText('At least $3.00 a month.').waitFor();
    await dialog.getByRole('button', { name: 'Add card and subscribe' }).click();
  };
  await leaveForCard();
  // A user who returns without a card is back on the billing page.
  await page.getByRole('link', { name: 'Back' }).click();
  await page.getByText('None on file').waitFor();
  await dialog.waitFor({ state: 'hidden' });
  await leaveForCard();
  await page.getByRole('button', { name: 'Add test card' }).waitFor();
  expect(await findingsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Add test card' }).click();
  // The user returns to the page, which completes the subscription automatically.
  await page.getByText('Pay as you go').first().waitFor();
  await page.getByText('Active', { exact: true }).waitFor();
  await page.getByText('Visa •••• 4242').waitFor();
  await dialog.waitFor({ state: 'hidden' });
  expect(tunnel.exit).toBeNull();

  const cap = page.getByLabel('Monthly spend limit (USD)');
  await cap.fill('many');
  await page.getByRole('button', { name: 'Set limit' }).click();
  await page.getByRole('alert').waitFor();
  await cap.fill('0');
  await page.getByRole('button', { name: 'Set limit' }).click();
  await page.getByText('Your limit is $0.00.').waitFor();
  expect(await tunnel.exitCode(70_000)).toBe(6);
  const refused = await open();
  expect(await refused.exitCode()).toBe(6);
  expect([...refused.stdout, ...refused.stderr].join('\n')).toContain('spend cap of $0.00 reached');
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('link', { name: 'Go to billing' }).click();
  await page.getByRole('button', { name: 'Remove limit' }).click();
  await page.getByText('No limit set.').waitFor();
  await (await open()).ready();

  // The month ends at the payment processor, and the invoice can be opened.
  const processor = await profile.context.newPage();
  await processor.goto(stack.run.simulator_url);
  await processor.getByRole('button', { name: 'To the end of the month' }).click();
  await processor.getByRole('cell', { name: 'paid' }).waitFor();
  await page.reload();
  const invoice = page.getByRole('link', { name: /^Open invoice SIM-/ });
  const [document] = await Promise.all([profile.context.waitForEvent('page'), invoice.click()]);
  await document.getByRole('heading', { name: /^Invoice SIM-/ }).waitFor();
  await document.getByText('$3.00').first().waitFor();
  expect(await findingsOf(document)).toEqual([]);
});

it('a server that does not charge shows no billing pages', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'guest');
  await profile.logIn(account.email);
  await profile.context.route('**/billing', async (route) => {
    if (route.request().resourceType() === 'document') return route.continue();
    const answer = await route.fetch();
    return route.fulfill({ response: answer, json: { ...((await answer.json()) as object), hidden: true } });
  });
  const page = await profile.tab('/billing');
  await page.getByText('Billing is off').waitFor();
  await page.getByRole('link', { name: 'Settings' }).waitFor();
  expect(await page.getByRole('link', { name: 'Billing' }).count()).toBe(0);
  expect(await page.getByRole('heading', { name: 'Invoices' }).count()).toBe(0);
});
