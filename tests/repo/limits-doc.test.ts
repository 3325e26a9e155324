// docs/limits.md is generated from tags beside the limits: with `node scripts/limits-page.mjs`, or with this test and UPDATE_DOCS=1.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

interface TaggedLimit {
  readonly area: string;
  readonly what: string;
  readonly happens: string;
  readonly value: string;
  readonly key: string | undefined;
  readonly place: string;
}

const { inWords, limitsPage, readLimits } = (await import(join(ROOT, 'scripts/limits-page.mjs'))) as {
  inWords: (name: string, value: number) => string;
  limitsPage: (limits: readonly TaggedLimit[]) => string;
  readLimits: () => readonly TaggedLimit[];
};

const PAGE = join(ROOT, 'docs/limits.md');
const limits = readLimits();
if (process.env['UPDATE_DOCS']) writeFileSync(PAGE, limitsPage(limits));

it('docs/limits.md matches the @limit tags in the code', () => {
  expect(readFileSync(PAGE, 'utf8'), 'node scripts/limits-page.mjs').toBe(limitsPage(limits));
  expect(limits.length).toBeGreaterThan(100);
});

it('every limit is listed once, and refers only to existing error codes', () => {
  const rows = limits.map(({ area, what }) => `${area}: ${what}`);
  expect(rows).toEqual([...new Set(rows)]);
  const codes = limits.flatMap(({ happens }) =>
    [...happens.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, code]) => code ?? ''),
  );
  expect(codes.length).toBeGreaterThan(50);
  expect(codes.filter((code) => !isErrorCode(code))).toEqual([]);
});

it('a server.toml key is shown with its table and its default', () => {
  const row = (key: string): TaggedLimit | undefined => limits.find((limit) => limit.key === key);
  expect(row('[limits] connections_per_tunnel')?.value).toBe('10,000');
  expect(row('[platform.mcp] calls_per_minute')?.value).toBe('120');
  expect(row('[platform.plans.free] tunnel_limit')?.value).toBe('3');
  expect(row('[limits] tcp_port_range')?.value).toBe('20000–20099');
});

it.each([
  ['A_BYTES', 65_536, '64 KiB'],
  ['A_BYTES', 1000, '1,000 bytes'],
  ['BYTES_PER_MINUTE', 64 * 1024 * 1024, '64 MiB'],
  ['A_MS', 90_000, '90 s'],
  ['A_MS', 86_400_000, '24 h'],
  ['A_MS', 604_800_000, '7 days'],
  ['waitMs', 2000, '2 s'],
  ['A_SECS', 2_592_000, '30 days'],
  ['idle_secs', 60, '1 min'],
  ['hold_days', 30, '30 days'],
  ['A_CHARS', 2000, '2,000 characters'],
  ['account_share', 0.25, '25 %'],
  ['A_MAX', 20_000, '20,000'],
])('%s of %s is shown as %s', (name, value, text) => {
  expect(inWords(name, value)).toBe(text);
});
