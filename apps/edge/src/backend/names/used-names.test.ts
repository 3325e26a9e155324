import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Owner } from '@tunnel/rules/tunnels';
import { FakeClock, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { quiet } from '../platform-backend.fixture.ts';
import { USED_NAMES_MAX, USED_NAMES_MS, USED_NAMES_PER_ACCOUNT_MAX, UsedNames } from './used-names.ts';

const ALICE: Owner = { kind: 'account', accountId: 'alice' };
const BOB: Owner = { kind: 'account', accountId: 'bob' };
const OPERATOR: Owner = { kind: 'operator' };

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let clock: FakeClock;

beforeEach(async () => {
  folder = await temporaryDirectory();
  clock = new FakeClock();
});

afterEach(() => folder.close());

const startRun = async (): Promise<UsedNames> => {
  const used = new UsedNames({ clock, logger: quiet, path: join(folder.path, 'used.jsonl') });
  await used.start();
  return used;
};

it('the last user of a name can return to it for 30 days, even in the next run', async () => {
  const first = await startRun();
  first.used('a.shop', BOB, null);
  first.used('shop', ALICE, null);
  first.used('news', OPERATOR, null);
  await first.stop();
  const used = await startRun();
  for (const name of ['shop', 'a.shop', '*.shop']) {
    expect([used.isKnownTo(name, ALICE, null), used.isKnownTo(name, BOB, null)]).toEqual([true, false]);
  }
  expect([used.isKnownTo('news', OPERATOR, null), used.isKnownTo('news', ALICE, null)]).toEqual([true, false]);
  await clock.advance(USED_NAMES_MS);
  expect(used.isKnownTo('shop', ALICE, null)).toBe(false);
  await used.stop();
});

it('a group’s name is known by the group key only, not by the account', async () => {
  const used = await startRun();
  used.used('pool', ALICE, 'key');
  used.used('pool', BOB, 'key');
  expect([used.isKnownTo('pool', BOB, 'key'), used.isKnownTo('pool', BOB, 'other')]).toEqual([true, false]);
  expect([used.isKnownTo('pool', BOB, null), used.isKnownTo('pool', ALICE, null)]).toEqual([false, false]);
  expect(used.isKnownTo('pool', ALICE, 'another of hers')).toBe(false);
  used.used('pool', ALICE, null);
  expect([used.isKnownTo('pool', ALICE, null), used.isKnownTo('pool', BOB, 'key')]).toEqual([true, false]);
  await used.stop();
});

it('the number of used names is bounded, and a damaged file is ignored', async () => {
  const used = await startRun();
  const ownerOf = (at: number): Owner => ({ kind: 'account', accountId: `account-${at % 200}` });
  for (let at = 0; at <= USED_NAMES_MAX; at += 1) used.used(`n${at}`, ownerOf(at), null);
  expect(used.size).toBe(USED_NAMES_MAX);
  expect([used.isKnownTo('n0', ownerOf(0), null), used.isKnownTo('n1', ownerOf(1), null)]).toEqual([false, true]);
  await used.stop();
  await writeFile(join(folder.path, 'used.jsonl'), 'nonsense\nmore\n');
  const next = await startRun();
  expect(next.size).toBe(0);
  await next.stop();
});

it('an account with too many used names evicts only its own names, even in the next run', async () => {
  const used = await startRun();
  const bound = USED_NAMES_PER_ACCOUNT_MAX;
  used.used('shop', ALICE, null);
  used.used('n0', ALICE, null);
  for (let at = 0; at < USED_NAMES_MAX + bound; at += 1) used.used(`n${at}`, BOB, null);
  await used.stop();
  const next = await startRun();
  const last = USED_NAMES_MAX + bound - 1;
  for (const run of [used, next]) {
    expect(run.size).toBe(bound + 1);
    expect([run.isKnownTo('shop', ALICE, null), run.isKnownTo('n0', ALICE, null)]).toEqual([true, false]);
    expect([run.isKnownTo(`n${last - bound}`, BOB, null), run.isKnownTo(`n${last}`, BOB, null)]).toEqual([false, true]);
  }
  await next.stop();
});
