// The trial at its size: a long history from the database, many large pools from a scripted route, and what each act costs.
import type { Page } from 'playwright-core';
import { Account } from '../../../browser/account.fixture.ts';
import { manyPools } from '../../../browser/large-lists.fixture.ts';
import { Profile } from '../../../browser/profile.fixture.ts';
import { onStage, type Tools } from './browser-and-stack.ts';
import { PageMeter } from './page-meter.ts';
import { seedHistory } from './seed-history.ts';

const LIMIT_MS = 100;
/** Two dropped frames in a row are not seen as a stop. */
const FRAME_LIMIT_MS = 50;
const WHEEL_TURNS = 120;

interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: 'ms' | 'elements';
  readonly limit: number;
  readonly note: string;
}

/** However long the lists are. */
const NODES = { unit: 'elements', limit: 4000, note: '' } as const;

export const tryScale = ({ values, say, check }: Tools): Promise<string> =>
  onStage(async ({ browser, stack }) => {
    const { tunnels = 0, pools = 0, members = 0 } = values;
    const account = await Account.signUp(stack, 'large');
    await seedHistory(stack.dataDir, account.email, tunnels);
    say(`${tunnels} tunnels are in the database`);
    const profile = await Profile.open(browser, stack, { viewport: { width: 1440, height: 900 } });
    await profile.logIn(account.email);
    const groups = manyPools(pools, members);
    await profile.context.route('**/load-balancing/groups', (route) =>
      route.fulfill({ json: { groups, warnings: [] } }),
    );
    const rows = [...(await tryTunnels(profile, tunnels)), ...(await tryPools(profile, pools))];
    for (const { what, value, unit, limit, note } of rows) {
      check(
        Math.round(value) <= limit,
        `${what.padEnd(44)} ${value.toFixed(0).padStart(5)} of ${limit} ${unit}  ${note}`,
      );
    }
    check(profile.faults.length === 0, 'no fault in the pages');
    await profile.close();
    const interactions = rows.filter(({ limit }) => limit === LIMIT_MS).map(({ value }) => value);
    return `the slowest of ${interactions.length} interactions took ${Math.max(...interactions)} ms`;
  });

const tryTunnels = async (profile: Profile, tunnels: number): Promise<Row[]> => {
  const page = await profile.tab('/tunnels');
  await page.getByRole('row').nth(10).waitFor();
  const meter = new PageMeter(page);
  await meter.install();
  const rows = [await scrollRow(page, meter, 'tunnels: scrolling by the wheel')];
  await toTheEnd(page);
  const nodes = await nodeCount(page);
  rows.push(await scrollRow(page, meter, `tunnels: scrolling with all ${tunnels} loaded`, -1));
  await page.evaluate('scrollTo(0, 0)');
  const acts: [string, () => Promise<void>][] = [
    ['tunnels: next row by keyboard', () => page.keyboard.press('j')],
    ['tunnels: only tcp', () => page.getByRole('radio', { name: 'tcp' }).click()],
    ['tunnels: only live ones', () => page.getByRole('radio', { name: 'Live' }).click()],
    ['tunnels: in any state again', () => page.getByRole('radio', { name: 'Any state' }).click()],
    ['tunnels: of any protocol again', () => page.getByRole('radio', { name: 'Any', exact: true }).click()],
    ['tunnels: open one', () => page.getByRole('row').nth(3).getByRole('link').click()],
    ['tunnels: back to the list', () => page.keyboard.press('Escape')],
  ];
  for (const [what, act] of acts) rows.push(await actRow(meter, what, act));
  rows.push({ what: 'tunnels: the page', value: nodes, ...NODES });
  await page.close();
  return rows;
};

const tryPools = async (profile: Profile, pools: number): Promise<Row[]> => {
  const page = await profile.tab('/pools');
  await page.getByText(`${pools} pools`).waitFor();
  const meter = new PageMeter(page);
  await meter.install();
  const toggle = (index: number) =>
    page.getByRole('article').nth(index).getByRole('button', { expanded: false }).first();
  const filter = page.getByLabel('Filter the pools');
  const rows = [await scrollRow(page, meter, 'pools: scrolling by the wheel')];
  await page.evaluate('scrollTo(0, 0)');
  rows.push(await actRow(meter, 'pools: open one with 50 members', () => toggle(1).click()));
  rows.push(await actRow(meter, 'pools: open another', () => toggle(0).click()));
  rows.push(await scrollRow(page, meter, 'pools: scrolling with open ones'));
  await page.evaluate('scrollTo(0, 0)');
  await filter.focus();
  for (const letter of 'pool-1') {
    rows.push(await actRow(meter, `pools: type "${letter}" into the filter`, () => page.keyboard.press(letter)));
  }
  rows.push(
    await actRow(meter, 'pools: only those with trouble', () => page.getByRole('radio', { name: /trouble/ }).click()),
  );
  rows.push({ what: 'pools: the page', value: await nodeCount(page), ...NODES });
  await page.close();
  return rows;
};

const actRow = async (meter: PageMeter, what: string, act: () => Promise<void>): Promise<Row> => {
  const { paintMs, longTaskMs } = await meter.interaction(act);
  const note = `input to paint; longest task ${longTaskMs === 0 ? 'below 50' : longTaskMs.toFixed(0)} ms`;
  return { what, value: paintMs, unit: 'ms', limit: LIMIT_MS, note };
};

const scrollRow = async (page: Page, meter: PageMeter, what: string, direction = 1): Promise<Row> => {
  await page.mouse.move(700, 500);
  const { longTasks, longestMs, p95FrameMs } = await meter.scrolling(async () => {
    for (let turns = 0; turns < WHEEL_TURNS; turns += 1) await page.mouse.wheel(0, direction * 400);
  });
  const note = `95 % of the frames come sooner; ${longTasks} long tasks, the longest ${longestMs.toFixed(0)} ms`;
  return { what, value: p95FrameMs, unit: 'ms', limit: FRAME_LIMIT_MS, note };
};

/** Until no more is loaded. */
const toTheEnd = async (page: Page): Promise<void> => {
  const whole = page.getByText(/addresses, \d+ live/);
  while (!(await whole.isVisible())) {
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    await page.evaluate('new Promise((done) => requestAnimationFrame(done))');
  }
};

const nodeCount = (page: Page): Promise<number> => page.evaluate<number>('document.querySelectorAll("*").length');
