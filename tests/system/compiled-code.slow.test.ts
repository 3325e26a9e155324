// Tests of the compiled code that the client keeps for its next start.
import {
  chmodSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { TemporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DIST, homeFolder, type Run, runClient } from './cli-bundle.fixture.ts';

let home: TemporaryDirectory;
beforeEach(async () => {
  home = await homeFolder();
});
afterEach(() => home.close());

const tunnel = (args: readonly string[], run?: Run) => runClient(home.path, args, run);

describe.skipIf(process.platform === 'win32')('compiled code', () => {
  const folder = () => join(home.path, '.cache/hatchway');
  const kept = () => readdirSync(folder()).map((name) => join(folder(), name));
  const only = (): string => {
    const [file = ''] = kept();
    expect(kept()).toEqual([file]);
    return file;
  };
  /** Runs a command that ends at once, and expects its usual output. */
  const help = async (run: Run = {}): Promise<void> => {
    const { code, stdout, stderr } = await tunnel(['http', '--help'], run);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('--subdomain');
  };
  /** Expects that the next start uses the kept file. A start that cannot use the file replaces it. */
  const isUsed = async (run: Run = {}): Promise<boolean> => {
    const { ino } = statSync(only());
    await help(run);
    return kept().length === 1 && statSync(only()).ino === ino;
  };

  it('is kept by the first start and used by the next one', async () => {
    await help();
    expect(statSync(only()).mode & 0o777).toBe(0o600);
    expect(statSync(folder()).mode & 0o777).toBe(0o700);
    expect(await isUsed()).toBe(true);
  });

  it('is replaced if it is damaged', async () => {
    await help();
    for (const damage of [
      () => truncateSync(only(), 1000),
      () => writeFileSync(only(), readFileSync(only()).fill(7, 5000, 5100), { mode: 0o600 }),
      () => writeFileSync(only(), ''),
      () => chmodSync(only(), 0o666),
    ]) {
      damage();
      expect(await isUsed()).toBe(false);
      expect(await isUsed()).toBe(true);
    }
  });

  it('never follows a link to a file', async () => {
    await help();
    const target = join(home.path, 'target');
    cpSync(only(), target);
    const link = only();
    rmSync(link);
    symlinkSync(target, link);
    const before = statSync(target).ino;
    await help();
    expect(statSync(target).ino).toBe(before);
    expect(statSync(link).ino).not.toBe(before);
  });

  it('is separate for flags of V8', async () => {
    await help();
    await help({ flags: ['--max-old-space-size=200'] });
    await help({ env: { NODE_OPTIONS: '--max-old-space-size=300 --stack-trace-limit=50' } });
    expect(kept()).toHaveLength(3);
  });

  it('belongs to one build of the program', async () => {
    const copy = join(home.path, 'copy');
    cpSync(DIST, copy, { recursive: true });
    const bin = join(copy, 'launch.cjs');
    await help({ bin });
    expect(await isUsed({ bin })).toBe(true);
    const text = readFileSync(join(copy, 'publish.cjs'), 'utf8');
    const changed = text.replaceAll(
      'Publish a local website, API or webhook',
      'Publish a local website, API or webhoop',
    );
    expect(changed).toHaveLength(text.length);
    writeFileSync(join(copy, 'publish.cjs'), changed);
    expect((await tunnel(['http', '--help'], { bin })).stdout).toContain('webhoop');
    expect(kept()).toHaveLength(2);
  });

  it('is kept by one of several clients that start at once', async () => {
    await Promise.all([help(), help(), help(), help()]);
    expect(await isUsed()).toBe(true);
  });

  it('is not kept, and no command fails, without a usable home folder', async () => {
    writeFileSync(join(home.path, 'file'), '');
    for (const HOME of ['/', '/dev/null', join(home.path, 'missing'), join(home.path, 'file'), '', undefined])
      await help({ env: { HOME, XDG_CACHE_HOME: undefined } });
    chmodSync(home.path, 0o777);
    await help();
    expect(readdirSync(home.path)).toEqual(['file']);
  });

  it('is turned off by NODE_DISABLE_COMPILE_CACHE', async () => {
    await help({ env: { NODE_DISABLE_COMPILE_CACHE: '1' } });
    expect(readdirSync(home.path)).toEqual([]);
  });

  it('is not kept by a command that fails', async () => {
    expect((await tunnel(['http', '--no-such-flag'])).code).toBe(2);
    expect(kept()).toEqual([]);
  });
});
