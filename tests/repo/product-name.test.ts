// The product name is Hatchway. Texts must name commands that work: `npx hatchway` in a checkout, and `tunnel` on a machine with an
// installed client.
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { EXAMPLE_PAGES, ROOT, run } from './checkout.fixture.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const USER_PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...EXAMPLE_PAGES,
];

/** Outside a checkout, npm would download an unrelated package named `tunnel`. */
it('no text runs npx with the name of the installed command', async () => {
  const command = ['npx', 'tunnel'].join(' ');
  // The changelog may show commands of earlier versions.
  const { stdout } = await run('git', ['grep', '-n', '-I', '-F', command, '--', ':!CHANGELOG.md']);
  expect(stdout).toBe('');
});

/** Programs that pages may run with npx. `vitest` regenerates pages and tests their rules, in a checkout. */
const RUN_IN_CHECKOUT = ['hatchway', 'vitest'];

it.each(USER_PAGES)('%s uses npx only with hatchway and vitest', (page) => {
  // A program that readers publish is their choice, as in `tunnel mcp-publish -- npx …`.
  const programs = [...read(page).matchAll(/(?<!-- |\/c )\bnpx ([\w@/.-]+)/g)].map((match) => match[1]);
  expect(programs.filter((program) => !RUN_IN_CHECKOUT.includes(program ?? ''))).toEqual([]);
});

it('the commands hatchway and tunnel are the same program', () => {
  const { bin } = JSON.parse(read('apps/cli/package.json')) as { bin: Record<string, string> };
  expect(bin['hatchway']).toBe(bin['tunnel']);
  const linked = ['hatchway', 'tunnel'].map((name) => realpathSync(join(ROOT, 'node_modules/.bin', name)));
  expect(linked).toEqual([join(ROOT, 'apps/cli/bin/tunnel.mjs'), join(ROOT, 'apps/cli/bin/tunnel.mjs')]);
});
