// The longest possible names and very large numbers: nothing is cut off, overlaps, or shifts when it appears.
import type { BillingStatus, GroupSummary, TunnelLogEntry, UsageSummary } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { orSkip, withBrowser } from './browser-test.fixture.ts';
import { type DashboardPage, visit } from './dashboard-pages.fixture.ts';
import { manyPools, manyTunnels } from './large-lists.fixture.ts';
import { Profile } from './profile.fixture.ts';

/** An account for all tests of this file, and a tab for tests that only read. */
const it = orSkip(
  withBrowser.extend<{ email: string; looker: { profile: Profile; page: Page } }>({
    email: [
      async ({ stack }, use) => {
        const account = await Account.signUp(stack, 'large');
        await account.newKey('W'.repeat(100));
        await use(account.email);
      },
      { scope: 'file' },
    ],
    looker: [
      async ({ browser, stack, email }, use) => {
        const profile = await Profile.open(browser, stack);
        await profile.logIn(email);
        await large(profile);
        await use({ profile, page: await profile.context.newPage() });
        await profile.close();
        expect(profile.faults).toEqual([]);
      },
      { scope: 'file' },
    ],
  }),
);

const SOON = { timeoutMs: 20_000, intervalMs: 50 };

const LABEL = 'a'.repeat(63);
const NAME = 'g'.repeat(100);
const ADDRESS = '[2001:0db8:85a3:0000:0000:8a2e:0370:7334]:65535';

const tunnels: TunnelLogEntry[] = manyTunnels(5).map((entry) => ({
  ...entry,
  label: LABEL,
  name: NAME,
  public_url: `http://${LABEL}.${LABEL}.example.com:65535`,
  client_name: 'c'.repeat(64),
  region_id: 'eu-central-frankfurt-12',
  request_count: 123_456_789_012,
  bytes_proxied: 9e15,
}));

const groups: GroupSummary[] = manyPools(1, 3).map((group) => ({
  ...group,
  name: NAME,
  label: LABEL,
  healthy_count: 0,
  unhealthy_count: 3,
  members: group.members.map((member) => ({
    ...member,
    client_addr: ADDRESS,
    name: NAME,
    client_name: 'c'.repeat(64),
    request_count: 123_456_789_012,
    public_url: `http://${LABEL}.example.com:65535`,
    last_failure_reason: `no answer from ${ADDRESS} within 10 s`,
  })),
}));

const large = async ({ context }: Profile): Promise<void> => {
  const change = (pattern: string, make: (body: never) => unknown): Promise<unknown> =>
    context.route(pattern, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: make((await answer.json()) as never) });
    });
  await change('**/usage', (body: UsageSummary) => ({ ...body, total_requests_30d: 9e15, total_bytes_30d: 9e15 }));
  await change('**/billing', (body: BillingStatus) => ({ ...body, estimated_mtd_cents: 123_456_789 }));
  await context.route('**/usage/tunnels?*', (route) => route.fulfill({ json: tunnels }));
  await context.route(`**/usage/tunnels/${tunnels[0]?.id}`, (route) => route.fulfill({ json: tunnels[0] }));
  await context.route('**/load-balancing/groups', (route) => route.fulfill({ json: { groups, warnings: [] } }));
};

/** Returns controls that are not completely visible, and "the page" if it is wider than the screen. */
const cutOff = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(`(() => {
    const width = document.documentElement.clientWidth;
    const wide = document.documentElement.scrollWidth > width ? ['the page'] : [];
    const parts = [...document.querySelectorAll('main a, main button, dialog[open] button, dialog[open] li')];
    const outside = parts.filter((part) => {
      const { left, right, width: own } = part.getBoundingClientRect();
      return left < 0 || right > width || own < 20;
    });
    return [...wide, ...outside.map((part) => part.getAttribute('aria-label') ?? part.textContent)];
  })()`);

const PAGES: readonly DashboardPage[] = [
  { name: 'overview', path: '/', heading: 'Overview', whole: 'Live tunnels' },
  { name: 'tunnels', path: '/tunnels', heading: 'Tunnels', whole: '3 live' },
  { name: 'tunnel', path: `/tunnels/${tunnels[0]?.id}`, heading: /example\.com/, whole: 'Tunnel ID' },
  { name: 'pools', path: '/pools', heading: 'Groups', whole: 'No healthy members.' },
  { name: 'keys', path: '/keys', heading: 'Keys', whole: 'Revoke' },
];

it.for(PAGES)(
  'the page $name shows long names and large numbers without cutting off controls, from phone to desktop width',
  async (shown, { looker: { page, profile } }) => {
    await visit(page, profile, shown);
    // The members table of a group may scroll sideways at widths with little room.
    for (const width of shown.name === 'pools' ? [360, 1440] : [360, 768, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      await eventually(async () => expect([width, await cutOff(page)]).toEqual([width, []]), SOON);
    }
  },
);

it('the revoke dialog of a key with a long label fits a phone', async ({ looker: { page, profile } }) => {
  const act = () => page.getByRole('button', { name: /^Revoke W/ }).click();
  await page.setViewportSize({ width: 360, height: 800 });
  await visit(page, profile, { name: 'keys', path: '/keys', heading: 'Keys', act });
  await page.getByRole('dialog').getByText("You can't undo this.").waitFor();
  expect(await cutOff(page)).toEqual([]);
});

it('the address of a group member does not overlap the next column', async ({ looker: { page, profile } }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await visit(page, profile, { name: 'pools', path: '/pools', heading: 'Groups', whole: ADDRESS });
  const text = await page.evaluate<number>(`(() => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector('tbody th'));
    return range.getBoundingClientRect().right;
  })()`);
  const health = await page.getByRole('row').nth(1).getByRole('cell').first().boundingBox();
  expect(text).toBeLessThanOrEqual(health?.x ?? 0);
});

it('an invoice date is shown in UTC in every time zone', async ({ browser, stack, email }) => {
  const profile = await Profile.open(browser, stack, { timezoneId: 'America/Los_Angeles' });
  await profile.logIn(email);
  const invoice = { id: 'in_1', number: 'A-1', status: 'paid', total: 300, currency: 'usd', created: 1_796_083_200 };
  await profile.context.route('**/billing/invoices', (route) => route.fulfill({ json: { invoices: [invoice] } }));
  const page = await profile.tab('/billing');
  await page.getByRole('row', { name: 'A-1' }).getByText('1 December 2026').waitFor();
  await profile.close();
});

/** Delays requests until the returned function is called. */
const hold = async ({ context }: Profile, pattern: RegExp): Promise<() => void> => {
  let letGo = (): void => {};
  const free = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  await context.route(pattern, async (route) => {
    await free;
    await route.fallback();
  });
  return letGo;
};

it.for([
  { path: '/', width: 1440, held: /:\d+\/usage(\/chart)?(\?|$)/, below: 'Requests per day', sign: /most on/ },
  { path: '/settings', width: 1440, held: /\/auth\/me$/, below: 'Devices', sign: 'Verified' },
])('the page $path at $width px does not shift when late content arrives ($below)', async (row, { profile, email }) => {
  await profile.logIn(email);
  await profile.context.route('**/usage/tunnels?*', (route) => route.fulfill({ json: manyTunnels(5) }));
  const day = { date: '2026-01-01', tunnels: 1, requests: 7, bytes: 7000 };
  await profile.context.route('**/usage/chart?*', (route) => route.fulfill({ json: [day] }));
  const letGo = await hold(profile, row.held);
  const page = await profile.context.newPage();
  await page.setViewportSize({ width: row.width, height: 900 });
  await page.goto(profile.urlOf(row.path));
  const heading = page.getByRole('heading', { name: row.below, exact: true });
  await heading.waitFor();
  const top = async (): Promise<number> => Math.round((await heading.boundingBox())?.y ?? -1);
  await page.locator('.skeleton').first().waitFor();
  const before = await top();
  letGo();
  await page.getByText(row.sign).first().waitFor();
  expect(await top()).toBe(before);
});
