// The peers bench without its measurements: options, evaluation of rounds, and the published page and picture.
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { node, ROOT } from './checkout.fixture.ts';

type Round = Record<string, Record<string, number>>;
interface Row {
  readonly name: string;
  readonly rounds: readonly Round[];
}
interface Runtime {
  readonly version: string;
  readonly major: number;
  readonly suffix: string;
}
interface Target {
  readonly row: string;
  readonly path: string;
  readonly figure: string;
  readonly limits: readonly Record<string, unknown>[];
  readonly why?: string;
}
interface Verdict {
  readonly reached: boolean;
  readonly limits: readonly { readonly than: string | null; readonly measured: { readonly median: number } }[];
}

const PROGRAM = join(ROOT, 'bench/peers.mjs');
const load = async <Module>(name: string): Promise<Module> =>
  (await import(join(ROOT, `bench/peers/${name}.mjs`))) as Module;

const { readPeersOptions, runtimesOf } = await load<{
  readPeersOptions: (args: string[], known: { rowNames: string[]; pathNames: string[] }) => Record<string, unknown>;
  runtimesOf: (files: string[], versionOf: (file: string) => string | null) => (Runtime & { readonly node: string })[];
}>('options');
const { judge, TARGETS } = await load<{
  judge: (target: Target, rows: readonly Row[], runtime: Runtime) => Verdict | null;
  TARGETS: readonly Target[];
}>('targets');
const { joinRecords } = await load<{ joinRecords: (earlier: unknown, record: unknown) => Record<string, unknown> }>(
  'record',
);
const { summarizeRow } = await load<{
  summarizeRow: (row: unknown, rounds: readonly Round[]) => { path: string; figures: unknown; ratio: unknown }[];
}>('summary');
const { renderPage } = await load<{ renderPage: (record: unknown, targets?: readonly Target[]) => string }>('page');
const { renderPicture } = await load<{ renderPicture: (record: unknown) => string }>('picture');
const { ROWS } = await load<{ ROWS: readonly { name: string; figures: string[] }[] }>('rows');
const { PATH_NAMES } = await load<{ PATH_NAMES: readonly string[] }>('paths/index');
const { startChild } = (await import(join(ROOT, 'bench/lib/children.mjs'))) as {
  startChild: (what: { name: string; command: string; args: string[] }) => { output: string };
};

const KNOWN = { rowNames: ['tcp-bulk-down', 'tcp-bulk-up', 'tcp-idle'], pathNames: ['ours', 'nginx'] };
const NODE_20: Runtime = { version: '20.20.2', major: 20, suffix: '' };
const NODE_26: Runtime = { version: '26.10.0', major: 26, suffix: '@26' };

it('bench:peers --scenario selects all rows that begin with the given text; without the flag, all rows run', () => {
  expect(readPeersOptions(['--scenario', 'tcp-b', '--path', 'ours,nginx'], KNOWN)).toMatchObject({
    rows: ['tcp-bulk-down', 'tcp-bulk-up'],
    paths: ['ours', 'nginx'],
    rounds: 5,
    seconds: 2,
    add: false,
  });
  expect(readPeersOptions(['--quick', '--add'], KNOWN)).toMatchObject({ rows: KNOWN.rowNames, rounds: 1, add: true });
});

it.each([
  [['--scenario', 'udp'], 'no row begins with udp'],
  [['--path', 'ours,theirs'], 'no path theirs'],
  [['--rounds', '0'], '--rounds takes a whole number'],
  [['--seconds', 'many'], '--seconds takes a whole number'],
  [['--fast'], '--fast'],
])('bench:peers rejects the options %j', (args, message) => {
  expect(() => readPeersOptions(args, KNOWN)).toThrow(message);
});

it('starts programs without the settings of the caller for Node.js and for our programs', async () => {
  vi.stubEnv('NODE_OPTIONS', '--max-old-space-size=100');
  vi.stubEnv('NODE_EXTRA_CA_CERTS', '/company.pem');
  vi.stubEnv('TUNNEL_API_KEY', 'key');
  const child = startChild({ name: 'env', command: 'sh', args: ['-c', 'env; echo end'] });
  vi.unstubAllEnvs();
  await expect.poll(() => child.output).toMatch(/\nend\n$/);
  expect(child.output).toContain('PATH=');
  expect(child.output).not.toMatch(/^(?:NODE|TUNNEL)_/m);
});

it('Hatchway paths on an additional Node.js carry its major version, or the full version if two have the same major version', () => {
  const versions: Record<string, string> = { a: '20.20.2', b: '26.10.0', c: '26.9.1' };
  const suffixes = (files: string[]) => runtimesOf(files, (file) => versions[file] ?? null).map(({ suffix }) => suffix);
  expect(suffixes(['a', 'b'])).toEqual(['', '@26']);
  expect(suffixes(['a', 'b', 'c'])).toEqual(['', '@26.10.0', '@26.9.1']);
  expect(() => suffixes(['a', 'nothing'])).toThrow('nothing is no Node.js');
});

const rowOf = (figure: string, rounds: Record<string, number>[]): Row[] => [
  {
    name: 'a-row',
    rounds: rounds.map((round) =>
      Object.fromEntries(Object.entries(round).map(([path, value]) => [path, { [figure]: value }])),
    ),
  },
];

it('a factor is computed within each round, against the best of the other paths', () => {
  const target = { row: 'a-row', path: 'ours', figure: 'cpu', limits: [{ atMost: 1, of: ['slow', 'fast', 'absent'] }] };
  // The second round was twice as slow for all paths.
  const rows = rowOf('cpu', [
    { ours: 9, fast: 10, slow: 30 },
    { ours: 18, fast: 20, slow: 60 },
    { ours: 12, fast: 10, slow: 30 },
  ]);
  const verdict = judge(target, rows, NODE_20);
  expect(verdict).toMatchObject({ reached: true, limits: [{ than: 'fast', measured: { min: 0.9, max: 1.2 } }] });
  expect(verdict?.limits[0]?.measured.median).toBeCloseTo(0.9);
});

it('a figure can be compared with another figure of the same path and round', () => {
  const rows = [{ name: 'a-row', rounds: [{ ours: { all: 30, one: 10 } }, { ours: { all: 80, one: 40 } }] }];
  const limits = [{ atMost: 20 }, { atMost: 2.5, ofFigure: 'one' }];
  const verdict = judge({ row: 'a-row', path: 'ours', figure: 'all', limits }, rows, NODE_20);
  expect(verdict).toMatchObject({
    reached: true,
    limits: [{ than: null }, { than: 'one', measured: { median: 2.5 } }],
  });
});

it('a target is reached if any of its limits is met, and newer Node.js versions can have stricter limits', () => {
  const rows = rowOf('cpu', [{ ours: 110, 'ours@26': 80, peer: 100, floor: 100 }]);
  const limits = [
    { atMost: 1, fromNode24: 0.7, of: ['peer'] },
    { atMost: 1.2, fromNode24: 0.75, of: ['floor'] },
  ];
  const target = { row: 'a-row', path: 'ours', figure: 'cpu', limits };
  expect(judge(target, rows, NODE_20)?.reached).toBe(true);
  expect(judge(target, rows, NODE_26)?.reached).toBe(false);
});

it('an additional Node.js is compared with the first Node.js, and the first has no verdict', () => {
  const rows = rowOf('cpu', [{ ours: 100, 'ours@26': 104 }]);
  const target = { row: 'a-row', path: 'ours', figure: 'cpu', limits: [{ atMost: 1.05, ofFirstNode: true }] };
  expect(judge(target, rows, NODE_20)).toBeNull();
  expect(judge(target, rows, NODE_26)).toMatchObject({ reached: true, limits: [{ than: 'ours' }] });
});

it('a target without measurements has no verdict', () => {
  const target = { row: 'a-row', path: 'ours', figure: 'cpu', limits: [{ atMost: 1, of: ['peer'] }] };
  expect(judge(target, rowOf('cpu', [{ ours: 1 }]), NODE_20)).toBeNull();
  expect(judge(target, [], NODE_20)).toBeNull();
});

it('every bench:peers target names an existing row, a figure of that row and existing paths', () => {
  for (const { row, path, figure, limits } of TARGETS) {
    expect(ROWS.find(({ name }) => name === row)?.figures, row).toContain(figure);
    for (const name of [path, ...limits.flatMap(({ of = [] }) => of as string[])]) expect(PATH_NAMES).toContain(name);
  }
});

it('a bench:peers summary lists the best path first, and computes a path that failed in a round from its other rounds', () => {
  const row = { figures: ['cpu'], rank: 'cpu', yardstick: 'nginx' };
  const [{ rounds } = { rounds: [] }] = rowOf('cpu', [
    { nginx: 10, ours: 8, peer: 30 },
    { nginx: 12, ours: 6 },
  ]);
  expect(summarizeRow(row, rounds)).toEqual([
    { path: 'ours', figures: { cpu: { median: 7, min: 6, max: 8 } }, ratio: { median: 0.65, min: 0.5, max: 0.8 } },
    { path: 'nginx', figures: { cpu: { median: 11, min: 10, max: 12 } }, ratio: { median: 1, min: 1, max: 1 } },
    { path: 'peer', figures: { cpu: { median: 30, min: 30, max: 30 } }, ratio: { median: 3, min: 3, max: 3 } },
  ]);
});

const record = (rows: Row[]) => ({
  format: 1,
  date: '2026-11-16T12:00:00.000Z',
  commands: ['npm run bench:peers'],
  quick: false,
  seconds: 2,
  machine: { model: 'a <fast> & cheap one', cores: 2, kernel: '6.1', memoryGib: 8, system: 'Debian', loadBefore: 0 },
  build: 'a-build',
  versions: { ours: '0.1.0', rathole: '0.5.0', openssh: null },
  runtimes: [NODE_20],
  paths: {
    ours: { protocol: 'tcp', carrier: 'plain', note: null },
    rathole: { protocol: 'tcp', carrier: 'plain', note: null },
    'ours-commands': { protocol: 'commands', carrier: 'plain', note: null },
  },
  missing: ['piko-http: piko is not installed'],
  failures: [{ row: 'tcp-bulk-down', path: 'rathole', message: 'it ended' }],
  rows,
});

it('bench:peers --add accepts a record of the same build and length, and rejects different builds and lengths', () => {
  const [first] = rowOf('cpu', [{ ours: 1 }]);
  const [second] = rowOf('cpu', [{ ours: 2 }]);
  const both = joinRecords(record([first as Row]), record([second as Row]));
  expect(both['rows']).toEqual([{ name: 'a-row', rounds: [{ ours: { cpu: 1 } }, { ours: { cpu: 2 } }] }]);
  expect(both['missing']).toEqual(['piko-http: piko is not installed']);
  expect(() => joinRecords({ ...record([]), build: 'another' }, record([]))).toThrow('of another build');
  expect(() => joinRecords({ ...record([]), seconds: 4 }, record([]))).toThrow('of another length');
});

const BULK: Row[] = [
  {
    name: 'tcp-bulk-down',
    rounds: [
      { ours: { cpuPerGb: 0.7, mbPerSecond: 1800 }, rathole: { cpuPerGb: 1.6, mbPerSecond: 800 } },
      { ours: { cpuPerGb: 0.8, mbPerSecond: 1700 } },
    ],
  },
];

it('the bench:peers page shows figures with their range, targets that were reached, missing programs and failures', () => {
  const page = renderPage(record(BULK));
  expect(page).toContain('| **ours** | plain | 0.75 (0.70..0.80) |');
  expect(page).toContain('| 0.44 × rathole reached |');
  expect(page).toContain('- Not measured: piko-http: piko is not installed.');
  expect(page).toContain('- Failed: rathole in tcp-bulk-down: it ended.');
  expect(page).toContain('npm run bench:peers` on 2026-11-16');
});

it('the bench:peers page gives the reason for a target that was missed, and not for a target that was reached', () => {
  const target = (atMost: number, why: string): Target => ({
    ...{ row: 'tcp-bulk-down', path: 'ours', figure: 'cpuPerGb', why },
    limits: [{ atMost }],
  });
  const page = renderPage(record(BULK), [target(0.5, 'the kernel copies.'), target(0.9, 'nothing to explain.')]);
  expect(page).toContain('- tcp-bulk-down, ours, CPU s/GB: the kernel copies.');
  expect(page).not.toContain('nothing to explain');
});

it('the bench:peers page shows how fast Node.js starts on this machine, so that a reader can scale absolute targets', () => {
  const commands = { name: 'commands', rounds: [{ 'ours-commands': { bareNodeMs: 49 } }] };
  expect(renderPage(record([...BULK, commands]))).toContain(
    '`node -e 0` takes 33 ms. Here it takes 49 ms on Node.js 20',
  );
  expect(renderPage(record(BULK))).not.toContain('node -e 0');
});

it('the bench:peers picture is well-formed SVG with bars for Hatchway and peers, and has dark theme colors', () => {
  const picture = renderPicture(record(BULK));
  const open: string[] = [];
  for (const [, closing, name = '', itself] of picture.matchAll(/<(\/?)([a-z]+)(?:\s[^<>]*?)?(\/?)>/g)) {
    if (closing) expect(open.pop()).toBe(name);
    else if (!itself) open.push(name);
  }
  expect(open).toEqual([]);
  expect(picture.replaceAll(/<[^<>]*>/g, '')).not.toMatch(/[<>]|&(?!(?:amp|lt|gt);)/);
  expect(picture).toContain('prefers-color-scheme: dark');
  expect(picture.match(/<rect class="ours"/g)).toHaveLength(1);
  expect(picture.match(/<rect class="peer"/g)).toHaveLength(1);
  const udp: Row = { name: 'udp-64', rounds: [{ 'ours-udp': { cpuPerDatagramUs: 12.3 } }] };
  expect(renderPicture(record([udp]))).toContain('>12.3</text>');
});

it('bench:peers --list prints rows and paths, and an unknown row exits with 2', async () => {
  const { code, stdout } = await node([PROGRAM, '--list']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^row +tcp-bulk-down /);
  expect(stdout).toMatch(/^path +rathole-tls /m);
  expect(await node([PROGRAM, '--scenario', 'nothing'])).toMatchObject({ code: 2 });
});
