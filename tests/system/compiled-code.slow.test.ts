// Tests of the compiled code that the client keeps for its next start, and of the compiled code that the build puts beside the bundle.
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
import { eventually, spawnProgram, type TemporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cleanEnv, ROOT } from '../repo/checkout.fixture.ts';
import { DIST, homeFolder, type Run, runClient } from './cli-bundle.fixture.ts';

const { keepCompiledCode, removeCompiledCode } = (await import(join(ROOT, 'scripts/lib/compiled-code.mjs'))) as {
  keepCompiledCode(options: { client: string; node?: string }): Promise<string>;
  removeCompiledCode(dist: string): void;
};

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
    expect((await tunnel(['list', '--no-such-flag'])).code).toBe(2);
    expect(readdirSync(home.path)).toEqual([]);
  });
});

describe.skipIf(process.platform === 'win32')('compiled code beside the bundle', () => {
  const client = () => join(home.path, 'client');
  const built = () => readdirSync(join(client(), 'dist')).filter((name) => /^publish-[0-9a-f]+$/.test(name));
  const kept = () => readdirSync(home.path).includes('.cache');

  beforeEach(() => {
    for (const folder of ['bin', 'dist'])
      cpSync(join(ROOT, 'apps/cli', folder), join(client(), folder), { recursive: true });
    removeCompiledCode(join(client(), 'dist'));
  });

  /** Runs a client that opens a tunnel, and stops it. No edge is needed: a client that is stopped while it connects ends without an error. */
  const run = async ({ flags = [], env = {} }: Run = {}): Promise<void> => {
    const bin = join(client(), 'bin/tunnel.mjs');
    const program = await spawnProgram({
      command: process.execPath,
      args: [...flags, bin, 'tcp', '22', '--server', '127.0.0.1:9', '--token', 'none', '--wait', '--json'],
      env: { ...cleanEnv(), HOME: home.path, NODE_V8_COVERAGE: undefined, ...env },
      cwd: home.path,
    });
    await eventually(() => expect(program.stdout.join('')).toContain('"reconnecting"'));
    program.signal('SIGTERM');
    expect(await program.waitForExit()).toMatchObject({ code: 0 });
    expect(program.stderr).toEqual([]);
  };

  it('comes from the build, and the first start uses it', async () => {
    expect(await keepCompiledCode({ client: client() })).toMatch(/^compiled code {2}\d+ KiB$/);
    const [name = ''] = built();
    expect(built()).toEqual([name]);
    expect(statSync(join(client(), 'dist', name)).mode & 0o777).toBe(0o644);
    await run();
    expect(kept()).toBe(false);
    await run({ flags: ['--max-old-space-size=200'] });
    expect(kept()).toBe(true);
    expect(built()).toEqual([name]);
  });

  it('is not used if it is damaged, and the first start keeps code for the user', async () => {
    await keepCompiledCode({ client: client() });
    truncateSync(join(client(), 'dist', built()[0] ?? ''), 100_000);
    await run();
    expect(kept()).toBe(true);
  });

  it('is turned off by NODE_DISABLE_COMPILE_CACHE', async () => {
    await keepCompiledCode({ client: client() });
    await run({ env: { NODE_DISABLE_COMPILE_CACHE: '1' } });
    expect(kept()).toBe(false);
  });

  it('is missing if the client does not run on the machine that builds', async () => {
    expect(await keepCompiledCode({ client: client(), node: '/bin/false' })).toMatch(
      /^compiled code {2}none \(the client ended: exit code 1\)/,
    );
    expect(await keepCompiledCode({ client: client(), node: join(home.path, 'missing') })).toContain('ENOENT');
    expect(built()).toEqual([]);
    await run();
    expect(kept()).toBe(true);
  });
});
