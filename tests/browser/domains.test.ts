// The names and ports of an account in the dashboard: reserved, held by a tunnel and kept after it, released and taken back.
import type { Reservation } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { cardOf, stateOf } from './domains-page.fixture.ts';
import { walkByTab } from './keyboard-walk.fixture.ts';
import { commandIn } from './pasted-command.fixture.ts';

const SOON = { timeoutMs: 20_000 };

it('a port is reserved by its number or any free one, and what is taken or over the plan is said in words', async ({
  profile,
  stack,
}) => {
  const [account, other] = [await Account.signUp(stack, 'ports'), await Account.signUp(stack, 'others')];
  const taken = `taken-${process.pid}`;
  await other.post('/reservations', { kind: 'subdomain', label: taken });
  await profile.logIn(account.email);
  const page = await profile.tab('/domains');
  const dialog = page.getByRole('dialog');
  const reserve = async (kind: string, label: string): Promise<void> => {
    await page.getByRole('button', { name: 'Reserve' }).first().click();
    await dialog.getByRole('radio', { name: kind }).check();
    await dialog.getByRole('textbox').fill(label);
    await page.keyboard.press('Enter');
  };
  await reserve('TCP port', '');
  await dialog.getByText(/is yours until you release it/).waitFor();
  expect(await commandIn(dialog)).toMatch(/tunnel tcp 22 --remote-port \d+/);
  await dialog.getByRole('button', { name: 'Done' }).click();
  const [port] = await account.get<Reservation[]>('/reservations');
  expect(port).toMatchObject({ kind: 'tcp', state: 'reserved' });
  await cardOf(page, 'Reserved')
    .getByRole('row', { name: port?.label ?? '' })
    .getByText('TCP port')
    .waitFor();

  await reserve('Name', taken);
  await dialog.getByText(`Subdomain '${taken}' is already in use.`).waitFor();
  await page.keyboard.press('Escape');
  await reserve('UDP port', '1');
  expect(await dialog.getByRole('alert').innerText()).toMatch(/port/i);
  await page.keyboard.press('Escape');
  await page.route('**/reservations', (route) =>
    route.request().method() === 'POST'
      ? route.fulfill({
          status: 403,
          json: { error: 'reservation limit of 3 reached', code: 'RESERVATION_LIMIT', request_id: 'r' },
        })
      : route.fallback(),
  );
  await reserve('Name', `more-${process.pid}`);
  await dialog.getByRole('alert').getByText('Reservation limit of 3 reached.').waitFor();
});

it('what a tunnel uses is held: in use, then kept until a day, on both pages; one press reserves it', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'held');
  const key = await account.newKey();
  const web = harness.use(await startWeb((_request, response) => void response.end('hello')));
  const name = `held-${process.pid}`;
  const tunnel = await harness.run(
    ['http', String(web.port), '--json', '--server', stack.control, '--subdomain', name],
    { env: { TUNNEL_API_KEY: key.token } },
  );
  const { tunnel_id: id } = await tunnel.ready();
  await profile.logIn(account.email);
  const page = await profile.tab(`/tunnels/${id}`);
  await page.getByText('Kept while in use and some days after.').waitFor();
  const list = await profile.tab('/domains');
  const row = cardOf(list, 'Kept for now').getByRole('row', { name });
  await row.getByText('In use').waitFor();
  expect(await row.getByText('until').count()).toBe(0);

  tunnel.signal('SIGTERM');
  expect(await tunnel.exitCode()).toBe(0);
  await eventually(async () => {
    const [held] = await account.get<Reservation[]>('/reservations');
    expect(held).toMatchObject({ state: 'held', active_tunnels: 0, expires_at: expect.any(String) });
  }, SOON);
  await row.getByText(/until \d+ \w+ \d{4}/).waitFor();
  await page.getByText(/Kept until \d+ \w+ \d{4}\./).waitFor();
  await page.getByRole('link', { name: 'Reserve it' }).click();
  await page.getByRole('heading', { name: 'Domains', level: 1 }).waitFor();
  await page.getByRole('button', { name: `Reserve ${name}` }).click();
  await page.getByRole('status').getByText(`${name} is reserved.`).waitFor();
  await cardOf(page, 'Reserved').getByRole('row', { name }).waitFor();
  expect(await stateOf(account, name)).toBe('reserved');
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect(await findingsOf(page)).toEqual([]);
});

it('where there are several regions a port asks for one', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'regions');
  await profile.logIn(account.email);
  const page = await profile.tab('/domains');
  await page.route('**/usage/regions', async (route) => {
    const [region] = (await (await route.fetch()).json()) as Record<string, unknown>[];
    await route.fulfill({ json: [region, { ...region, region_id: 'fra', name: 'Frankfurt' }] });
  });
  let asked: unknown;
  await page.route('**/reservations', (route) => {
    if (route.request().method() !== 'POST') return route.fallback();
    asked = route.request().postDataJSON();
    return route.fulfill({
      status: 400,
      json: { error: 'region_id: is not known', code: 'API_BAD_REQUEST', request_id: 'r' },
    });
  });
  await page.reload();
  await page.getByRole('button', { name: 'Reserve' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).waitFor();
  expect(await dialog.getByLabel('Region').count()).toBe(0);
  await dialog.getByRole('radio', { name: 'TCP port' }).check();
  await dialog.getByLabel('Region').selectOption('Frankfurt (fra)');
  await dialog.getByRole('button', { name: 'Reserve' }).click();
  await dialog.getByRole('alert').getByText('Is not known.').waitFor();
  expect(asked).toEqual({ kind: 'tcp', region_id: 'fra' });
});
