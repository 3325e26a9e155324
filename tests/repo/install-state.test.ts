import { mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

let dir: TemporaryDirectory;
beforeEach(async () => {
  dir = await temporaryDirectory();
  write('package.json', { dependencies: { a: '^1.0.0' } });
  write('package-lock.json', lock({}));
  write('node_modules/.package-lock.json', lock({}));
});
afterEach(() => dir.close());

const write = (path: string, content: object): void => {
  mkdirSync(join(dir.path, path, '..'), { recursive: true });
  writeFileSync(join(dir.path, path), JSON.stringify(content));
};

const lock = (more: object) => ({
  packages: { '': { dependencies: { a: '^1.0.0' } }, 'node_modules/a': { version: '1.0.0' }, ...more },
});

interface Script {
  installState(root: string): unknown;
  linkWorkspaces(root: string): void;
}

const script = async (): Promise<Script> => (await import(`${ROOT}/scripts/lib/install-state.mjs`)) as Script;

const state = async (): Promise<unknown> => (await script()).installState(dir.path);

it('an install is fresh if its packages match the lock file', async () => {
  expect(await state()).toEqual({ fresh: true });
});

it('an install is fresh without optional packages of other platforms', async () => {
  write('package-lock.json', lock({ 'node_modules/b': { version: '1.0.0', optional: true } }));
  expect(await state()).toEqual({ fresh: true });
});

it.each([
  ['node_modules is missing', () => rmSync(join(dir.path, 'node_modules'), { recursive: true }), 'ci'],
  ['an install was interrupted', () => rmSync(join(dir.path, 'node_modules/.package-lock.json')), 'ci'],
  [
    'the lock file has a package more',
    () => write('package-lock.json', lock({ 'node_modules/b': { version: '1.0.0' } })),
    'ci',
  ],
  [
    'the lock file has another version',
    () => write('package-lock.json', lock({ 'node_modules/a': { version: '1.0.1' } })),
    'ci',
  ],
  [
    'package.json asks for another package',
    () => write('package.json', { dependencies: { a: '^1.0.0', b: '^1.0.0' } }),
    'install',
  ],
  ['there is no lock file', () => rmSync(join(dir.path, 'package-lock.json')), 'install'],
])('an install is stale if %s', async (_, change, command) => {
  change();
  expect(await state()).toMatchObject({ fresh: false, command });
});

it('a new workspace is linked without an install', async () => {
  write('packages/b/package.json', {});
  write('package-lock.json', lock({ 'packages/b': {}, 'node_modules/@x/b': { resolved: 'packages/b', link: true } }));
  expect(await state()).toMatchObject({ fresh: false, command: 'ci' });
  (await script()).linkWorkspaces(dir.path);
  expect(await state()).toEqual({ fresh: true });
  expect(realpathSync(join(dir.path, 'node_modules/@x/b'))).toBe(realpathSync(join(dir.path, 'packages/b')));
});
