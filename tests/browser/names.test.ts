// The names and ports of an account in the dashboard: reserved, held during and after a tunnel, released and taken back.
import type { Reservation } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { startWeb } from '../system/http-tunnels.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { cardOf, stateOf } from './domains-page.fixture.ts';
import { walkByTab } from './keyboard-walk.fixture.ts';
import type { StackAddress } from './own-stack.fixture.ts';
import { commandIn } from './pasted-command.fixture.ts';
import type { Profile } from './profile.fixture.ts';

const SOON = { timeoutMs: 20_000 };

it('a free port can be reserved, and a taken name, an invalid port and a full plan show an error', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'ports');
  const other = await Account.signUp(stack, 'others');
  const taken = `taken-${process.pid}`;
  await other.post('/reservations', { kind: 'subdomain', label: taken });
  await profile.logIn(account.email);
  const page = await profile.tab('/names');
  const dialog = page.getByRole('dialog');
  const reserve = async (kind: string, label: string): Promise<void> => {
    await page.getByRole('button', { name: 'Reserve' }).first().click();
    await dialog.getByRole('radio', { name: kind }).check();
    await dialog.getByRole('textbox').fill(label);
    await page.keyboard.press('Enter');
  };
  await reserve('TCP port', '');
  await dialog.getByText(/is reserved until you release it/).waitFor();
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

it('a name in use is held, is kept until a date after the tunnel closes, and can be reserved with a click', async ({
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
  await page.getByText('Held while in use and for 30 days after.').waitFor();
  const list = await profile.tab('/names');
  const row = cardOf(list, 'Temporarily held').getByRole('row', { name });
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
  await page.getByRole('link', { name: 'Reserve', exact: true }).click();
  await page.getByRole('heading', { name: 'Names', level: 1 }).waitFor();
  await page.getByRole('button', { name: `Reserve ${name}` }).click();
  await page.getByRole('status').getByText(`${name} is reserved for your account`).waitFor();
  await cardOf(page, 'Reserved').getByRole('row', { name }).waitFor();
  expect(await stateOf(account, name)).toBe('reserved');
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect(await findingsOf(page)).toEqual([]);
});

it('reserving a port asks for the region if there are several regions', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'regions');
  await profile.logIn(account.email);
  const page = await profile.tab('/names');
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

const DAY_MS = 86_400_000;

const made = (number: number, some: Partial<Reservation> = {}): Reservation => ({
  id: `id-${number}`,
  kind: 'subdomain',
  label: `name-${number}`,
  region_id: null,
  state: 'reserved',
  assigned: false,
  active_tunnels: 0,
  public_address: `http://name-${number}.localhost:8000`,
  created_at: '2030-01-01T00:00:00.000Z',
  last_used_at: null,
  expires_at: null,
  hold_seconds: 2_592_000,
  grace_seconds: 604_800,
  ...some,
});

const random = (number: number): Reservation =>
  made(number, {
    label: `brisk-otter-${number}`,
    state: 'held',
    assigned: true,
    hold_seconds: 86_400,
    expires_at: new Date(Date.now() + DAY_MS).toISOString(),
  });

const openNames = async (profile: Profile, stack: StackAddress, list: readonly Reservation[]): Promise<Page> => {
  await profile.logIn((await Account.signUp(stack, 'many')).email);
  await profile.context.route(
    ({ pathname }) => pathname === '/reservations',
    (route) => route.fulfill({ json: list }),
  );
  return profile.tab('/names');
};

it('unused random names are folded into a single line, which says how long they are held', async ({
  profile,
  stack,
}) => {
  const list = [made(1), ...Array.from({ length: 12 }, (_, index) => random(index + 2))];
  const page = await openNames(profile, stack, list);
  await page.getByText('12 unused random names').waitFor();
  expect(await page.getByText('brisk-otter').count()).toBe(0);
  await page.locator('summary', { hasText: '12 unused random names' }).focus();
  await page.keyboard.press('Enter');
  await page.getByText('A random name is held for 24 hours after the last use.').waitFor();
  await page.getByRole('row', { name: 'brisk-otter-13' }).getByRole('button', { name: 'Reserve' }).waitFor();
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect(await findingsOf(page)).toEqual([]);
});

it('a name takes a single line on a phone, and opens to its address and actions', async ({ profile, stack }) => {
  const long = 'x'.repeat(63);
  const list = [
    made(1, { label: long, public_address: `http://${long}.localhost:8000` }),
    made(2, { state: 'held', active_tunnels: 2 }),
    random(3),
  ];
  const page = await openNames(profile, stack, list);
  await page.setViewportSize({ width: 390, height: 844 });
  const line = page.locator(`[data-name="${long}"]`);
  await line.waitFor();
  const heights = await page.evaluate<number[]>(
    `[...document.querySelectorAll('[data-name]')].map((line) => line.getBoundingClientRect().height)`,
  );
  expect(heights).toHaveLength(2);
  for (const height of heights) expect(height).toBeLessThanOrEqual(48);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  await page.locator('[data-name="name-2"]').getByText('In use').waitFor();
  await line.locator('summary').click();
  await line.getByText(`http://${long}.localhost:8000`, { exact: true }).waitFor();
  await line.getByRole('button', { name: `Release ${long}` }).waitFor();
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect(await findingsOf(page)).toEqual([]);
});

it('a list of 500 names shows 50, and all on request', async ({ profile, stack }) => {
  const page = await openNames(
    profile,
    stack,
    Array.from({ length: 500 }, (_, index) => made(index)),
  );
  await page.getByRole('button', { name: 'Show 450 more' }).click();
  await page.getByRole('row', { name: 'name-499' }).waitFor();
  await page.reload();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.locator('[data-name]').first().waitFor();
  expect(await page.locator('[data-name]').count()).toBe(50);
  await page.getByRole('button', { name: 'Show 450 more' }).click();
  await page.locator('[data-name="name-499"]').waitFor();
});
