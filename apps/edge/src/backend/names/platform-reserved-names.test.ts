import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Logger, systemClock } from '@tunnel/runtime';
import { eventually, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quiet } from '../platform-backend.fixture.ts';
import { LinkFailure } from '../platform-link.ts';
import { NAMES_ROWS_PER_TURN } from './limits.ts';
import { PlatformReservedNames } from './platform-reserved-names.ts';

type Name = {
  kind: 'subdomain' | 'tcp' | 'udp';
  label: string;
  account_id: string | null;
  group_key_hash: string | null;
};

const name = (label: string, account_id: string | null, kind: Name['kind'] = 'subdomain'): Name => ({
  kind,
  label,
  account_id,
  group_key_hash: null,
});

const changed = (id: number, of: Name) => ({ kind: 'name-changed', id, name: of }) as const;

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
const open: PlatformReservedNames[] = [];

beforeEach(async () => {
  folder = await temporaryDirectory();
});

afterEach(async () => {
  for (const known of open.splice(0)) await known.stop();
  await folder.close();
});

/**
 * Creates a response body with one JSON object per line. Each line is sent as soon as it is available, and the body ends after the last
 * line.
 */
const bodyOf = (lines: Iterable<object> | AsyncIterable<object>): ReadableStream<Uint8Array> =>
  ReadableStream.from(
    (async function* () {
      for await (const line of lines) yield new TextEncoder().encode(`${JSON.stringify(line)}\n`);
    })(),
  ) as ReadableStream<Uint8Array>;

let heard: [string, string | null][] = [];

const start = async (names: () => Promise<ReadableStream<Uint8Array>>, logger: Logger = quiet) => {
  const path = join(folder.path, 'names.jsonl');
  const known = new PlatformReservedNames({
    clock: systemClock,
    logger,
    link: { names },
    path,
    onDomains: (keepers) => heard.push(...keepers),
  });
  open.push(known);
  await known.start();
  return { known, path };
};

const snapshot = (at: number, names: readonly Name[]) => async () => bodyOf([{ at }, ...names, { end: true }]);

it('a snapshot sets the reserved names, later changes update them, and older changes are ignored', async () => {
  const { known } = await start(snapshot(7, [name('shop', 'a'), name('*.shop', 'a'), name('20042', 'b', 'tcp')]));
  expect(known.isReserved('shop')).toBe(false);
  known.takeOnce();
  await eventually(() => expect(known.isReserved('shop')).toBe(true));
  expect([known.isReserved('x.shop'), known.isReserved('20042')]).toEqual([true, false]);
  known.changed(changed(8, name('shop', null)));
  known.changed(changed(9, name('blog', 'b')));
  // A change from before the snapshot is ignored, because the snapshot includes it.
  known.changed(changed(6, name('shop', 'c')));
  expect([known.isReserved('shop'), known.isReserved('blog')]).toEqual([false, true]);
  expect([known.countOf('subdomain'), known.countOf('tcp'), known.countOf('udp')]).toEqual([2, 1, 0]);
});

it('changes during a snapshot are kept, and the snapshot does not undo them', async () => {
  let goOn = (): void => {};
  const waiting = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const lines = async function* () {
    yield { at: 7 };
    yield name('shop', 'a');
    await waiting;
    yield { end: true };
  };
  const { known } = await start(async () => bodyOf(lines()));
  known.takeOnce();
  known.changed(changed(7, name('old', 'a')));
  known.changed(changed(8, name('blog', 'b')));
  known.changed(changed(9, name('shop', null)));
  goOn();
  await eventually(() => expect(known.isReserved('old')).toBe(false));
  expect([known.isReserved('shop'), known.isReserved('blog')]).toEqual([false, true]);
});

it('an incomplete snapshot is discarded: known names stay, and the snapshot is requested again', async () => {
  let asked = 0;
  const whole = snapshot(1, [name('shop', 'a')]);
  const { known } = await start(async () => {
    asked += 1;
    return asked === 2 ? bodyOf([{ at: 2 }]) : whole();
  });
  known.takeOnce();
  await eventually(() => expect(known.isReserved('shop')).toBe(true));
  known.takeOnce();
  known.takeAnew();
  await eventually(() => expect(asked).toBe(2));
  expect(known.isReserved('shop')).toBe(true);
  await eventually(() => {
    known.takeOnce();
    expect(asked).toBe(3);
  });
});

it('an older platform without the list of names is asked again after an outage', async () => {
  let asked = 0;
  const { known } = await start(async () => {
    asked += 1;
    throw new LinkFailure('refused', 'the platform responded with 404');
  });
  known.takeOnce();
  await eventually(() => expect(asked).toBe(1));
  for (let times = 0; times < 3; times += 1) known.takeOnce();
  // The platform was unreachable and may have been upgraded, so the edge asks again.
  await eventually(() => {
    known.askAgain();
    expect(asked).toBe(2);
  });
});

it('the next run knows the reserved names without the platform, including later changes', async () => {
  const first = await start(snapshot(1, [name('shop', 'a'), name('blog', 'b')]));
  first.known.takeOnce();
  await eventually(() => expect(first.known.isReserved('shop')).toBe(true));
  first.known.changed(changed(2, name('shop', null)));
  first.known.changed(changed(3, name('news', 'c')));
  await first.known.stop();
  const { known } = await start(() => Promise.reject(new LinkFailure('away', 'nobody')));
  expect(['shop', 'blog', 'news'].map((label) => known.isReserved(label))).toEqual([false, true, true]);
  expect(known.get('subdomain', 'news')).toEqual({ accountId: 'c', groupKeyHash: null });
});

it.each(['', 'nonsense\n', '{"file":"reserved-names","version":1}\n{"kind":"subdomain"}\n'])(
  'a damaged file of reserved names is reported and ignored: %j',
  async (text) => {
    const path = join(folder.path, 'names.jsonl');
    await writeFile(path, text);
    const lines: string[] = [];
    const logger = Object.assign(Object.create(quiet) as Logger, {
      error: (_fields: object, line: string) => lines.push(line),
    });
    const { known } = await start(snapshot(1, [name('shop', 'a')]), logger);
    expect(lines).toEqual(text === '' ? [] : [expect.stringContaining('cannot read')]);
    expect(known.countOf('subdomain')).toBe(0);
    known.takeOnce();
    await eventually(async () => expect(await readFile(path, 'utf8')).toContain('"label":"shop"'));
  },
);

it('20,000 reserved names are processed in many short turns of the event loop', async () => {
  const rows = 20_000;
  const lines = function* () {
    yield { at: 1 };
    for (let row = 0; row < rows; row += 1) yield name(`name-${row}`, `3f0c2b1e-0000-4000-8000-${row % 1000}`);
    yield { end: true };
  };
  // As from a socket: the snapshot comes in pieces of 64 KiB, all available at once.
  const text = Array.from(lines(), (line) => `${JSON.stringify(line)}\n`).join('');
  const bytes = new TextEncoder().encode(text);
  const pieces = function* () {
    for (let from = 0; from < bytes.length; from += 65_536) yield bytes.subarray(from, from + 65_536);
  };
  const { known, path } = await start(async () => ReadableStream.from(pieces()) as ReadableStream<Uint8Array>);
  known.takeOnce();
  // The duration of a turn depends on the machine, so the test counts turns: no turn processes more than NAMES_ROWS_PER_TURN rows.
  let turns = 0;
  while (known.countOf('subdomain') < rows) {
    await nextTurn();
    turns += 1;
  }
  expect(turns).toBeGreaterThanOrEqual(rows / NAMES_ROWS_PER_TURN);
  await known.stop();
  expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(rows + 2);
});

describe('verified domains', () => {
  const domain = (id: number, host: string, accountId: string | null, keepsTunnels = false) =>
    ({ kind: 'domain-changed', id, domain: host, account_id: accountId, keeps_tunnels: keepsTunnels }) as const;

  it('come from the snapshot and from changes, stay on disk, and are reported to listeners', async () => {
    heard = [];
    const rows = async () =>
      bodyOf([{ at: 7 }, { domain: 'a.test', account_id: 'a' }, name('shop', 'a'), { end: true }]);
    const { known } = await start(rows);
    known.takeOnce();
    await eventually(() => expect(heard).toEqual([['a.test', 'a']]));
    known.changed(domain(8, 'b.test', 'b'));
    known.changed(domain(9, 'a.test', null, true));
    expect([known.accountOfDomain('a.test'), known.accountOfDomain('b.test')]).toEqual([null, 'b']);
    // Late changes from before the snapshot change no owner. Listeners still hear of a removal, with the current owner.
    known.changed(domain(6, 'b.test', null));
    known.changed(domain(5, 'gone.test', null));
    known.changed(domain(4, 'gone.test', 'c'));
    expect(known.accountOfDomain('gone.test')).toBeNull();
    expect(heard.slice(1)).toEqual([
      ['b.test', 'b'],
      ['b.test', 'b'],
      ['gone.test', null],
    ]);
    await known.stop();
    const again = await start(async () => Promise.reject(new Error('away')));
    expect([again.known.accountOfDomain('b.test'), again.known.isReserved('shop')]).toEqual(['b', true]);
  });

  it('missing from a new snapshot are reported as removed; lapsed domains keep their tunnels', async () => {
    heard = [];
    const verified = ['removed.test', 'lapsed.test', 'both.test'].map((one) => ({ domain: one, account_id: 'a' }));
    const snapshots = [
      [{ at: 7 }, ...verified, { end: true }],
      [{ at: 20 }, { lapsed_domain: 'lapsed.test', account_id: 'a' }, { end: true }],
      [{ at: 30 }, { end: true }],
    ];
    const { known } = await start(async () => bodyOf(snapshots.shift() ?? []));
    known.takeOnce();
    await eventually(() => expect(heard).toHaveLength(3));
    known.changed(domain(8, 'both.test', null, true));
    expect([heard.length, known.domains.lastAccountOf('both.test')]).toEqual([3, 'a']);
    known.takeAnew();
    await eventually(() => expect(heard).toHaveLength(5));
    expect(heard.slice(3)).toEqual([
      ['removed.test', null],
      ['both.test', null],
    ]);
    expect([known.accountOfDomain('lapsed.test'), known.domains.lastAccountOf('lapsed.test')]).toEqual([null, 'a']);
    known.takeAnew();
    await eventually(() => expect(heard.slice(5)).toEqual([['lapsed.test', null]]));
  });

  it('in a snapshot of 10,000 are all loaded', async () => {
    const rows = Array.from({ length: 10_000 }, (_, nth) => ({ domain: `host-${nth}.example.org`, account_id: 'a' }));
    const { known } = await start(async () => bodyOf([{ at: 1 }, ...rows, { end: true }]));
    known.takeOnce();
    await eventually(() => expect(known.accountOfDomain('host-9999.example.org')).toBe('a'));
    expect(known.domains.size).toBe(10_000);
  });
});
