// Tests of the bundles of the client: the modules that a command runs.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TemporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ROOT } from '../repo/checkout.fixture.ts';
import { DIST, homeFolder, type Run, runClient } from './cli-bundle.fixture.ts';

let home: TemporaryDirectory;
beforeEach(async () => {
  home = await homeFolder();
});
afterEach(() => home.close());

const tunnel = (args: readonly string[], run?: Run) => runClient(home.path, args, run);

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
