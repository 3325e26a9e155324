// The product is called Hatchway, and texts name its commands so that they work: `npx hatchway` in a checkout, `tunnel` where the client is installed.
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT, run } from './checkout.fixture.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const USER_PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** Outside of a checkout, npm would fetch an unrelated package called `tunnel`. */
it('no text runs npx with the name of the installed command', async () => {
  const command = ['npx', 'tunnel'].join(' ');
  // The changelog says how commands were shown once.
  const { stdout } = await run('git', ['grep', '-n', '-I', '-F', command, '--', ':!CHANGELOG.md']);
  expect(stdout).toBe('');
});

/** `vitest` writes generated pages and tests their rules, in a checkout. */
const RUN_IN_CHECKOUT = ['hatchway', 'vitest'];

it.each(USER_PAGES)('%s uses npx only with hatchway and vitest', (page) => {
  // A program that a reader publishes is the reader's choice: `tunnel mcp-publish -- npx …`.
  const programs = [...read(page).matchAll(/(?<!-- |\/c )\bnpx ([\w@/.-]+)/g)].map((match) => match[1]);
  expect(programs.filter((program) => !RUN_IN_CHECKOUT.includes(program ?? ''))).toEqual([]);
});

it('the commands hatchway and tunnel are the same program', () => {
  const { bin } = JSON.parse(read('apps/cli/package.json')) as { bin: Record<string, string> };
  expect(bin['hatchway']).toBe(bin['tunnel']);
  const linked = ['hatchway', 'tunnel'].map((name) => realpathSync(join(ROOT, 'node_modules/.bin', name)));
  expect(linked).toEqual([join(ROOT, 'apps/cli/bin/tunnel.mjs'), join(ROOT, 'apps/cli/bin/tunnel.mjs')]);
});
