// Tests of certificate orders when a platform is killed during an order, and when two platforms share a database.
import { join } from 'node:path';
import type { OwnDomainView } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { Computer } from '../computer.fixture.ts';
import { ask } from '../embedded-database.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { pidOfPart } from '../kill-trial.fixture.ts';
import { MANY_LOGINS } from '../platform-test.fixture.ts';
import { Outside, SERVER } from './outside.fixture.ts';

const SOON = { timeoutMs: 30_000 };

const addWithRecord = async (outside: Outside, who: Computer, name: string): Promise<void> => {
  const added = await who.json<OwnDomainView>(['domains', 'add', name]);
  outside.dns.set(name, 'CNAME', added.cname_target);
};

it('a platform killed during an order finishes the same order after its restart and begins no second order', async ({
  harness,
}) => {
  const outside = await Outside.open(harness);
  const stack = await outside.stack(harness, { programs: true });
  const ann = await Computer.of(harness, stack, 'ann');
  await eventually(async () => expect(await outside.serialOf('tunnels.test')).not.toBe(''), SOON);
  await eventually(async () => expect(await outside.serialOf('any.tunnels.test')).not.toBe(''), SOON);
  const finalized = outside.authority.count('finalize');
  outside.authority.hangs = true;
  await addWithRecord(outside, ann, 'shop.example.com');
  await eventually(() => expect(outside.authority.count('finalize')).toBe(finalized + 1), SOON);
  process.kill(pidOfPart(stack.dataDir, 'platform'), 'SIGKILL');
  outside.authority.hangs = false;
  // The killed platform had locked the order for a minute. Clearing the lock skips the wait.
  const url = stack.databaseUrl;
  if (url === null) throw new Error('the database runs');
  await ask(url, 'update certificates set locked_until = null');
  await eventually(async () => expect(await outside.serialOf('shop.example.com')).toMatch(/^[0-9a-f]+$/), SOON);
  expect([outside.ordersOf('shop.example.com').length, outside.authority.count('finalize')]).toEqual([
    1,
    finalized + 1,
  ]);
}, 120_000);

it('two platforms on one database order each certificate once', async ({ harness }) => {
  const outside = await Outside.open(harness);
  const first = await outside.stack(harness);
  // The second platform cannot bind the port of the DNS responder, so only the first orders wildcards.
  const second = await harness.stack({
    command: 'platform',
    server: SERVER,
    platform: `secret_key_file = "${join(first.dataDir, 'master-key')}"`,
    databaseUrl: first.databaseUrl?.reveal() ?? '',
    tables: `${MANY_LOGINS}\n${outside.tables}`,
    env: {
      ...outside.env,
      TUNNEL_ACME__STORAGE_KEY_FILE: join(first.dataDir, 'certificate-key'),
    },
  });
  const people = [await Computer.of(harness, first, 'ann'), await Computer.of(harness, first, 'bob')];
  const names = ['a', 'b', 'c', 'd', 'e', 'f'].map((label) => `${label}.example.com`);
  await Promise.all(
    people.map(async (who, at) => {
      for (const name of names.slice(at * 3, at * 3 + 3)) await addWithRecord(outside, who, name);
    }),
  );
  for (const name of names) {
    await eventually(async () => expect(await outside.serialOf(name)).toMatch(/^[0-9a-f]+$/), SOON);
  }
  expect(names.map((name) => outside.ordersOf(name).length)).toEqual(names.map(() => 1));
  expect([outside.ordersOf('tunnels.test').length, outside.ordersOf('*.tunnels.test').length]).toEqual([1, 1]);
  expect(outside.authority.accounts.size).toBe(1);
  const issued = [first, second].map(
    ({ program }) => program.stderr.filter((line) => line.includes('certificate issued')).length,
  );
  expect(issued.reduce((sum, count) => sum + count)).toBe(names.length + 2);
}, 120_000);
