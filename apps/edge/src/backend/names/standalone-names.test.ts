import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Owner } from '@tunnel/rules/tunnels';
import type { Logger } from '@tunnel/runtime';
import { eventually, FakeClock, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { askedTunnel, quiet } from '../platform-backend.fixture.ts';
import { STANDALONE_NAMES_MAX, StandaloneNames } from './standalone-names.ts';

const DAY_MS = 24 * 3_600_000;

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let clock: FakeClock;

beforeEach(async () => {
  folder = await temporaryDirectory();
  clock = new FakeClock();
});

afterEach(() => folder.close());

interface Given {
  readonly reserved?: Readonly<Record<string, readonly string[]>>;
  readonly hold?: number;
  readonly grace?: number;
  readonly logger?: Logger;
}

/** Starts a run of the edge. All runs of a test share a folder. */
const startRun = async (given: Given = {}) => {
  const names = new StandaloneNames({
    clock,
    logger: given.logger ?? quiet,
    rules: { hold_days: given.hold ?? 30, assigned_hold_hours: 24, grace_days: given.grace ?? 7 },
    keys: Object.entries(given.reserved ?? {}).map(([account, reserved]) => ({ account, reserved, domains: [] })),
    dataDir: folder.path,
  });
  await names.start();
  let tunnels = 0;
  const ask = (
    account: string,
    label: string,
    kind: 'subdomain' | 'tcp' = 'subdomain',
    choice: 'asked' | 'assigned' = 'asked',
  ) => {
    tunnels += 1;
    const tunnelId = `tun_${tunnels}`;
    const owner: Owner = { kind: 'account', accountId: account };
    const endpoint = { kind, label, choice, groupKeyHash: null, joinsGroup: false } as const;
    const refusal = names.admit(askedTunnel(tunnelId, account, { owner, endpoint }));
    if (refusal === null) names.opened(tunnelId);
    return { code: refusal?.code ?? 'open', close: () => names.closed(tunnelId) };
  };
  /** Opens and immediately closes a tunnel. Returns 'open' or the code of the refusal. */
  const use = (account: string, label: string, kind?: 'tcp'): string => {
    const { code, close } = ask(account, label, kind);
    close();
    return code;
  };
  return { names, ask, use };
};

const IN_USE = 'TUNNEL_SUBDOMAIN_IN_USE';

it('an assigned name is held for its hours, even after a restart, then kept from other accounts for the grace days', async () => {
  const HOUR_MS = 3_600_000;
  const first = await startRun({ grace: 1 });
  first.ask('alice', 'brisk-otter', 'subdomain', 'assigned').close();
  first.use('alice', 'shop');
  await first.names.stop();
  const second = await startRun({ grace: 1 });
  clock.setWallClock(clock.now() + 47 * HOUR_MS);
  expect(second.use('bob', 'brisk-otter')).toBe(IN_USE);
  clock.setWallClock(clock.now() + HOUR_MS);
  expect(second.use('bob', 'brisk-otter')).toBe('open');
  expect(second.use('bob', 'shop')).toBe(IN_USE);
  await second.names.stop();
});

it('a used name stays with its account across runs for the hold days, then for the grace days', async () => {
  const first = await startRun();
  expect(first.use('alice', 'shop')).toBe('open');
  await first.names.stop();
  const second = await startRun();
  expect([second.use('bob', 'shop'), second.use('alice', 'a.shop')]).toEqual([IN_USE, 'open']);
  await second.names.stop();
  await clock.advance(31 * DAY_MS);
  const third = await startRun();
  expect(third.use('bob', 'shop')).toBe(IN_USE);
  await clock.advance(7 * DAY_MS);
  expect(third.use('bob', 'shop')).toBe('open');
  expect(third.use('alice', 'shop')).toBe(IN_USE);
  await third.names.stop();
});

it('a name in use when the edge was killed counts as used until the next start', async () => {
  const first = await startRun();
  first.ask('alice', 'shop');
  await clock.advance(100);
  await expect
    .poll(async () => JSON.parse(await readFile(join(folder.path, 'names.json'), 'utf8')) as unknown)
    .toMatchObject({
      names: [{ label: 'shop', state: 'held', account: 'alice', in_use: true }],
    });
  await clock.advance(40 * DAY_MS);
  const second = await startRun();
  await clock.advance(29 * DAY_MS);
  expect(second.use('bob', 'shop')).toBe(IN_USE);
  await second.names.stop();
});

it.each(['later', 'at the end'])(
  'a file of names that could not be saved is saved %s, without another change',
  async (when) => {
    const error = vi.fn();
    const first = await startRun({ logger: { ...quiet, error } as unknown as Logger });
    const file = join(folder.path, 'names.json');
    await mkdir(file);
    first.use('alice', 'shop');
    await eventually(async () => {
      await clock.advance(60_000);
      expect(error).toHaveBeenCalledOnce();
    });
    await rmdir(file);
    if (when === 'later') {
      await eventually(async () => {
        await clock.advance(60_000);
        expect(await readFile(file, 'utf8')).toContain('"shop"');
      });
    }
    await first.names.stop();
    expect((await startRun()).use('bob', 'shop')).toBe(IN_USE);
  },
);

it('without hold days, use claims no name, but reserved names and ports stay with their account', async () => {
  const { names, use } = await startRun({ hold: 0, grace: 0, reserved: { alice: ['kept', 'tcp/20042'] } });
  expect([use('alice', 'shop'), use('bob', 'shop'), use('bob', 'kept'), use('alice', 'kept')]).toEqual([
    ...['open', 'open', IN_USE, 'open'],
  ]);
  expect([use('bob', '20042', 'tcp'), use('alice', '20042', 'tcp')]).toEqual(['TUNNEL_PORT_IN_USE', 'open']);
  await names.stop();
});

it('a name removed from the config is released, and an added name belongs to its account despite earlier use', async () => {
  const first = await startRun({ reserved: { alice: ['kept', '*.kept'] } });
  expect([first.names.reserved.isReserved('kept'), first.names.reserved.isReserved('x.kept')]).toEqual([true, true]);
  expect(first.use('alice', 'shop')).toBe('open');
  await first.names.stop();
  const second = await startRun({ reserved: { bob: ['shop'] } });
  expect([second.names.reserved.isReserved('kept'), second.names.reserved.isReserved('x.kept')]).toEqual([
    false,
    false,
  ]);
  expect([second.use('bob', 'kept'), second.use('alice', 'shop'), second.use('bob', 'shop')]).toEqual([
    ...[IN_USE, IN_USE, 'open'],
  ]);
  await clock.advance(7 * DAY_MS);
  expect(second.use('bob', 'kept')).toBe('open');
  await second.names.stop();
});

it('an account holds at most 100 names by use; one more releases the name unused for the longest time', async () => {
  const { names, use } = await startRun();
  for (let at = 0; at <= 100; at += 1) {
    expect(use('alice', `n${at}`)).toBe('open');
    await clock.advance(1);
  }
  await names.stop();
  const text = await readFile(join(folder.path, 'names.json'), 'utf8');
  const rows = (JSON.parse(text) as { names: { label: string; state: string }[] }).names;
  expect(rows.filter(({ state }) => state === 'held')).toHaveLength(100);
  expect(rows.filter(({ state }) => state === 'released').map(({ label }) => label)).toEqual(['n0']);
});

it.each(['{', '{"version":2,"names":[]}', '{"version":1,"names":[{"kind":"subdomain"}]}'])(
  'an unreadable file of names is reported and moved aside, not overwritten: %j',
  async (text) => {
    await writeFile(join(folder.path, 'names.json'), text);
    const lines: [object, string][] = [];
    const logger = Object.assign(Object.create(quiet) as Logger, {
      error: (fields: object, line: string) => lines.push([fields, line]),
    });
    const { names, use } = await startRun({ logger });
    expect(lines).toEqual([
      [
        expect.objectContaining({ file: join(folder.path, 'names.json'), reason: expect.any(String) as string }),
        expect.stringContaining('cannot read the file of names, so it was moved aside'),
      ],
    ]);
    expect(use('alice', 'shop')).toBe('open');
    await names.stop();
    const kept = (await readdir(folder.path)).filter((file) => file.startsWith('names.json.damaged-'));
    expect(kept).toHaveLength(1);
    expect(await readFile(join(folder.path, kept[0] ?? ''), 'utf8')).toBe(text);
    expect(await readFile(join(folder.path, 'names.json'), 'utf8')).toContain('"shop"');
  },
);

it('an account that opens too many names loses only its own released names', async () => {
  const released_at = new Date(clock.now()).toISOString();
  const row = (account: string, label: string) => ({
    kind: 'subdomain',
    label,
    state: 'released',
    account,
    group_key_hash: null,
    in_use: false,
    last_used_at: released_at,
    released_at,
  });
  const his = Array.from({ length: STANDALONE_NAMES_MAX - 1 }, (_, at) => row('bob', `his-${at}`));
  const path = join(folder.path, 'names.json');
  await writeFile(path, JSON.stringify({ version: 1, names: [row('alice', 'hers'), ...his] }));
  const { names, use } = await startRun();
  for (const label of ['one', 'two', 'three']) expect(use('bob', label)).toBe('open');
  expect(use('bob', 'hers')).toBe(IN_USE);
  expect(['his-3', 'his-2'].map((label) => use('carol', label))).toEqual([IN_USE, 'open']);
  await names.stop();
  const { names: rows } = JSON.parse(await readFile(path, 'utf8')) as { names: unknown[] };
  expect(rows).toHaveLength(STANDALONE_NAMES_MAX);
});

it('reserved words are refused to every account unless the operator has reserved the word for the account', async () => {
  const run = await startRun({ reserved: { alice: ['autodiscover'] } });
  for (const label of ['wpad', 'mta-sts', 'ns1', 'ns9', 'a.dns']) {
    expect([label, run.ask('bob', label).code]).toEqual([label, 'TUNNEL_SUBDOMAIN_INVALID']);
  }
  expect(run.ask('alice', 'autodiscover').code).toBe('open');
  expect(run.ask('bob', 'autodiscover').code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
  expect(run.ask('bob', 'ns10').code).toBe('open');
});
