// The tunnel keys in docs/configuration.md match the rows of tunnel options. To regenerate the keys: UPDATE_DOCS=1 npx vitest run
// --project repo tests/repo/configuration-doc.test.ts
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';
import { ROWS, render } from './configuration-doc.fixture.ts';

const PAGE = join(ROOT, 'docs/configuration.md');
const UPDATE = 'UPDATE_DOCS=1 npx vitest run --project repo tests/repo/configuration-doc.test.ts';

if (process.env['UPDATE_DOCS']) writeFileSync(PAGE, render(readFileSync(PAGE, 'utf8')));

it('docs/configuration.md has the exact row of every tunnel option', () => {
  const page = readFileSync(PAGE, 'utf8');
  expect(ROWS.length).toBeGreaterThan(30);
  expect(page, UPDATE).toBe(render(page));
});
