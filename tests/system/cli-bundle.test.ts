// Tests of the bundles of the client: the modules that a command runs, and the compiled code that the client keeps for its next start.
import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cleanEnv, type Ended, ROOT } from '../repo/checkout.fixture.ts';

const DIST = join(ROOT, 'apps/cli/dist');
const BIN = join(ROOT, 'apps/cli/bin/tunnel.mjs');

let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
  chmodSync(home.path, 0o755);
});
afterEach(() => home.close());

interface Run {
  readonly bin?: string;
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs the client with a home folder of the test. */
const tunnel = (args: readonly string[], { bin = BIN, flags = [], env = {} }: Run = {}): Promise<Ended> =>
  new Promise((resolve) => {
    const all = { ...cleanEnv(), HOME: home.path, NODE_V8_COVERAGE: undefined, ...env };
    execFile(process.execPath, [...flags, bin, ...args], { env: all }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    );
  });

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly count: number }[];
    }[];
  }[];
}

/** Returns the functions that ran in a bundle. A module that is loaded on demand is a function with the path of the module. */
const ranIn = async (bundle: string, args: readonly string[]): Promise<readonly string[]> => {
  const folder = join(home.path, 'coverage');
  await tunnel(args, { env: { NODE_V8_COVERAGE: folder } });
  const [file = ''] = readdirSync(folder);
  const { result } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Coverage;
  rmSync(folder, { recursive: true });
  const script = result.find(({ url }) => url.endsWith(`/dist/${bundle}.cjs`));
  return (script?.functions ?? [])
    .filter(({ ranges: [whole] }) => (whole?.count ?? 0) > 0)
    .map(({ functionName }) => functionName);
};

const ZOD = 'node_modules/zod/index.js';
const YAML = 'packages/config/src/layers/yaml-layer.ts';
const CONFIG = 'packages/config/src/client/client-config.ts';
const LOGS = 'node_modules/pino/pino.js';
const INSPECTOR = 'packages/client/src/inspector/inspector.ts';
const FOLDERS = 'packages/client/src/local/files/served-folder.ts';
const CLIENT = 'packages/client/src/client.ts';
const PROTOCOL = 'node_modules/@modelcontextprotocol/server/dist/index.mjs';
/** Opens no tunnel, because nothing listens on the port. Runs as far as the connection. */
const TO_NOWHERE = ['http', '3000', '--server', '127.0.0.1:1', '--token-file', 'key'];

describe('the bundle of a command', () => {
  it('runs no schema, parser or log for the list of commands and the version', async () => {
    for (const args of [['--help'], ['-h'], ['help'], ['--version']]) {
      const ran = await ranIn('help', args);
      expect(ran).toContain('main');
      for (const module of [ZOD, YAML, CONFIG, LOGS]) expect(ran, `${args[0]}: ${module}`).not.toContain(module);
    }
  });

  it('runs no log, inspector, folder or config file before the connection of a tunnel', async () => {
    writeFileSync(join(home.path, 'key'), 'tnl_key');
    const ran = await ranIn('publish', TO_NOWHERE);
    expect(ran).toContain(ZOD);
    for (const module of [YAML, CONFIG, LOGS, INSPECTOR, FOLDERS]) expect(ran, module).not.toContain(module);
  });

  it('reads config.yml if there is one', async () => {
    mkdirSync(join(home.path, '.tunnel'));
    writeFileSync(join(home.path, '.tunnel/config.yml'), 'server: 127.0.0.1:1\n');
    for (const args of [['--help'], ['start']]) {
      const ran = await ranIn(args[0] === 'start' ? 'publish' : 'help', args);
      for (const module of [YAML, CONFIG]) expect(ran, `${args[0]}: ${module}`).toContain(module);
    }
  });

  it('runs neither the MCP protocol nor the tunnel client for other commands', async () => {
    const ran = await ranIn('tunnel', ['list']);
    expect(ran).toContain('apps/cli/src/commands/list.ts');
    for (const module of [PROTOCOL, CLIENT]) expect(ran, module).not.toContain(module);
  });

  it('lists MCP tools without running the tunnel client', async () => {
    const ran = await ranIn('tunnel', ['mcp', '--help']);
    expect(ran).toContain('apps/cli/src/commands/mcp.ts');
    expect(ran).not.toContain(CLIENT);
  });

  it('prints only its version for --version and -V', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    for (const flag of ['--version', '-V'])
      expect(await tunnel([flag])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('contains only ASCII, so that V8 stores a single byte per character', () => {
    for (const name of readdirSync(DIST).filter((file) => file.endsWith('.cjs')))
      expect(/\P{ASCII}/u.exec(readFileSync(join(DIST, name), 'utf8'))?.index, name).toBeUndefined();
  });
});

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
