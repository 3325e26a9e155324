// docs/limits.md is LIMITS in another form. UPDATE_DOCS=1 npx vitest run packages/protocol writes it anew.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LIMIT_NOTES, type LimitNote } from './limit-notes.ts';
import { LIMITS, type LimitName } from './limits.ts';

const FILE = new URL('../../../docs/limits.md', import.meta.url);
const SOURCE = new URL('./limits.ts', import.meta.url);

const INTRODUCTION = `# Limits

Every bound of the wire, of an edge and of a client, by the name it has in the code. A buffer, a table or a wait that
is not here has no business in the code. What an operator may set is in \`[limits]\` of \`server.toml\`; these here are fixed.
A limit that a peer runs into is answered with a code of [errors.md](errors.md); how the wire behaves at each is in
[protocol.md](protocol.md).

This page is written from \`packages/protocol/src/limits.ts\` and \`limit-notes.ts\`; a test keeps them equal
(\`UPDATE_DOCS=1 npx vitest run packages/protocol\`).
`;

const NAMES = Object.keys(LIMITS) as LimitName[];

/** [heading, names] in the order of the source: a comment between dashes begins a section. */
const sectionsOf = (source: string): [string, LimitName[]][] => {
  const sections: [string, LimitName[]][] = [];
  for (const line of source.split('\n')) {
    const heading = /^ {2}\/\/ --- (.+) ---$/.exec(line)?.[1];
    if (heading !== undefined) sections.push([heading[0]!.toUpperCase() + heading.slice(1), []]);
    const name = /^ {2}([A-Z][A-Z0-9_]+): /.exec(line)?.[1];
    if (name !== undefined) sections.at(-1)?.[1].push(name as LimitName);
  }
  return sections;
};

const inSteps = (value: number, steps: readonly (readonly [number, string])[]): string => {
  const [size, unit] = steps.find(([step]) => value >= step && value % step === 0) ?? [1, steps.at(-1)?.[1] ?? ''];
  return `${value / size} ${unit}`;
};

const readable = (value: number, unit: LimitNote['unit']): string => {
  if (unit === 'bytes')
    return inSteps(value, [
      [2 ** 30, 'GiB'],
      [2 ** 20, 'MiB'],
      [1024, 'KiB'],
      [1, 'bytes'],
    ]);
  if (unit === 'ms')
    return inSteps(value, [
      [3_600_000, 'h'],
      [60_000, 'min'],
      [1000, 's'],
      [1, 'ms'],
    ]);
  if (unit === 'share') return `${value * 100} %`;
  return unit === 'chars' ? `${value} characters` : '';
};

const rowOf = (name: LimitName): string => {
  const { unit, why } = LIMIT_NOTES[name];
  const value: number = LIMITS[name];
  return `| \`${name}\` | ${value} | ${readable(value, unit)} | ${why} |`;
};

const render = (): string => {
  const sections = sectionsOf(readFileSync(SOURCE, 'utf8')).map(([title, names]) =>
    [`## ${title}\n`, '| Name | Value | That is | Why |', '|---|---|---|---|', ...names.map(rowOf), ''].join('\n'),
  );
  return `${INTRODUCTION}\n${sections.join('\n')}`;
};

if (process.env['UPDATE_DOCS']) writeFileSync(FILE, render());

describe('docs/limits.md', () => {
  const page = readFileSync(FILE, 'utf8');

  it('lists every limit', () => {
    expect(NAMES.filter((name) => !page.includes(`| \`${name}\` | ${LIMITS[name]} |`))).toEqual([]);
  });

  it('lists no limit that is gone', () => {
    const listed = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1] ?? '');
    expect(listed.filter((name) => !(NAMES as string[]).includes(name))).toEqual([]);
  });

  it('says what the code says, to the letter', () => {
    expect(page, 'UPDATE_DOCS=1 npx vitest run packages/protocol').toBe(render());
  });
});

describe('limit notes', () => {
  it.each(NAMES)('%s has a reason, and a unit that its name agrees with', (name) => {
    const { unit, why } = LIMIT_NOTES[name];
    expect(why.length).toBeGreaterThan(10);
    expect(why).not.toMatch(/\.$/);
    if (name.endsWith('_MS')) expect(unit).toBe('ms');
    if (name.endsWith('_BYTES')) expect(unit).toBe('bytes');
    if (name.endsWith('_CHARS')) expect(unit).toBe('chars');
    expect(LIMITS[name]).toBeGreaterThan(0);
  });
});

describe('limits that lean on each other', () => {
  it('two pings fit into the time until a peer is dead, on both kinds of connection', () => {
    expect(LIMITS.CONTROL_DEAD_AFTER_MS).toBeGreaterThan(2 * LIMITS.CONTROL_PING_INTERVAL_MS);
    expect(LIMITS.CARRIER_DEAD_AFTER_MS).toBeGreaterThan(2 * LIMITS.CARRIER_PING_INTERVAL_MS);
  });

  it('the client says why a local dial failed before the edge gives up', () => {
    expect(LIMITS.STREAM_OPEN_TIMEOUT_MS).toBeGreaterThan(LIMITS.LOCAL_DIAL_TIMEOUT_MS);
  });

  it('windows: floor, first, largest; one frame of DATA fits a first window and a 24-bit length', () => {
    expect(LIMITS.STREAM_WINDOW_FLOOR_BYTES).toBeLessThanOrEqual(LIMITS.STREAM_WINDOW_INITIAL_BYTES);
    expect(LIMITS.STREAM_WINDOW_INITIAL_BYTES).toBeLessThanOrEqual(LIMITS.STREAM_WINDOW_MAX_BYTES);
    expect(LIMITS.FRAME_DATA_MAX_BYTES).toBeLessThan(2 ** 24);
  });
});
