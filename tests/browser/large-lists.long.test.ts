// Lists of any length keep the page small: only the part near the screen is rendered.
import type { GroupSummary, TunnelLogEntry } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { Account } from './account.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { manyPools, manyTunnels } from './large-lists.fixture.ts';
import type { Profile } from './profile.fixture.ts';

const NODES_MAX = 4000;

const nodeCount = (page: Page): Promise<number> => page.evaluate<number>('document.querySelectorAll("*").length');

/** Scrolls to the end of the page repeatedly until `isEnd` is true. */
const scrollToEnd = (page: Page, isEnd: () => Promise<boolean>): Promise<void> =>
  eventually(
    async () => {
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
      if (!(await isEnd())) throw new Error('not at the end yet');
    },
    { timeoutMs: 60_000, intervalMs: 50 },
  );

/**
 * Answers list requests in place of the platform, because opening so many tunnels with clients would take an hour. Returns the requested
 * offsets of older pages.
 */
const answerWith = async ({ context }: Profile, all: readonly TunnelLogEntry[]): Promise<Set<number>> => {
  const offsets = new Set<number>();
  await context.route('**/usage/tunnels?*', (route) => {
    const asked = new URL(route.request().url()).searchParams;
    const isLive = asked.get('state') === 'active';
    const some = all.filter(({ unregistered_at: end }) => (end === null) === isLive);
    const offset = Number(asked.get('offset') ?? 0);
    if (!isLive && offset > 0) offsets.add(offset);
    return route.fulfill({ json: some.slice(offset, offset + Number(asked.get('limit') ?? 50)) });
  });
  return offsets;
};

it('a list of 2,000 tunnels scrolls to the last with fewer than 4,000 page elements', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'long');
  await profile.logIn(account.email);
  const all: TunnelLogEntry[] = manyTunnels(2000);
  await answerWith(profile, all);
  const page = await profile.tab('/tunnels');
  await page.getByRole('row').nth(5).waitFor();
  expect(await nodeCount(page)).toBeLessThan(NODES_MAX);
  const last = page.getByRole('link', { name: all.at(-1)?.label ?? '' });
  await scrollToEnd(page, () => last.isVisible());
  expect(await nodeCount(page)).toBeLessThan(NODES_MAX);
  expect(await page.getByRole('row').count()).toBeLessThan(100);
});

it('a search without results stops after about 1,000 tunnels, and continues on request', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'seeker');
  await profile.logIn(account.email);
  const offsets = await answerWith(profile, manyTunnels(2000));
  const page = await profile.tab('/tunnels?q=site-1999');
  await page.getByText('0 addresses in the newest 1,003 tunnels').waitFor();
  expect(offsets.size).toBe(9);
  await page.getByRole('button', { name: 'Load older' }).press('Enter');
  await page.getByRole('link', { name: 'site-1999' }).waitFor();
  await page.getByText('1 address, 0 live').waitFor();
});

it('60 groups with 50 members each can be scrolled, filtered and opened with fewer than 4,000 page elements', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'wide');
  await profile.logIn(account.email);
  const groups: GroupSummary[] = manyPools(60, 50);
  await profile.context.route('**/load-balancing/groups', (route) => route.fulfill({ json: { groups, warnings: [] } }));
  const page = await profile.tab('/pools');
  await page.getByText('60 groups').waitFor();
  expect(await nodeCount(page)).toBeLessThan(NODES_MAX);
  await scrollToEnd(page, () =>
    page.getByRole('article', { name: groups.at(-1)?.name ?? '', exact: true }).isVisible(),
  );
  expect(await nodeCount(page)).toBeLessThan(NODES_MAX);
  await page.getByLabel('Filter groups').fill(groups[30]?.name ?? '');
  const pool = page.getByRole('article', { name: groups[30]?.name ?? '', exact: true });
  await pool.waitFor();
  await pool.getByRole('button', { expanded: false }).click();
  await pool.getByRole('row').nth(20).waitFor();
  expect(await nodeCount(page)).toBeLessThan(NODES_MAX);
});
