// The table in docs/platform.md is the bounds in another form, with their comments as notes.
// UPDATE_DOCS=1 npx vitest run apps/platform/src/limits writes it anew.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LIMITS } from './limits.ts';

const PAGE = new URL('../../../docs/platform.md', import.meta.url);
const SOURCE = new URL('limits.ts', import.meta.url);
const TABLE = /<!-- bounds -->[\s\S]*<!-- \/bounds -->/;

/** The comment right above a bound. */
const noteOf = (name: string, source: string): string =>
  new RegExp(`/\\*\\* (.*) \\*/\\n  ${name}:`).exec(source)?.[1]?.replaceAll('|', '\\|') ?? '';

const render = (): string => {
  const source = readFileSync(SOURCE, 'utf8');
  const rows = Object.entries(LIMITS).map(([name, value]) => `| \`${name}\` | ${value} | ${noteOf(name, source)} |`);
  return ['<!-- bounds -->', '| Name | Value | Note |', '|---|---|---|', ...rows, '<!-- /bounds -->'].join('\n');
};

if (process.env['UPDATE_DOCS']) writeFileSync(PAGE, readFileSync(PAGE, 'utf8').replace(TABLE, render));

describe('docs/platform.md', () => {
  it('lists every bound with its value, to the letter', () => {
    const [table] = TABLE.exec(readFileSync(PAGE, 'utf8')) ?? [];
    expect(table, 'UPDATE_DOCS=1 npx vitest run apps/platform/src/limits').toBe(render());
  });
});
