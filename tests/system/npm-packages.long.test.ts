// The npm packages as a user gets them: packed by a release, installed into an empty folder with scripts turned off, and started from there.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Program, spawnProgram, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withCallersCertificates } from '../caller-certificates.fixture.ts';
import { cleanEnv, ROOT } from '../repo/checkout.fixture.ts';
import { askHttp, endpointOf } from './http-tunnels.fixture.ts';

const SLOW_MS = 300_000;

let folder: TemporaryDirectory;
let out: string;
let project: string;
const programs: Program[] = [];

const start = async (command: string, args: readonly string[]): Promise<Program> => {
  const env = { ...cleanEnv(), HOME: folder.path, TUNNEL_API_KEY: undefined };
  const program = await spawnProgram({ command, args: [...args], cwd: folder.path, env });
  programs.push(program);
  return program;
};
const bin = (name: string): string => join(project, 'node_modules/.bin', name);

/** From npm's cache where that is possible, as on a machine without a network. */
const install = (packages: readonly string[]): void => {
  const args = ['install', ...packages, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const env = withCallersCertificates(cleanEnv());
  const npm = (more: string) => spawnSync('npm', [...args, more], { cwd: project, env, encoding: 'utf8' });
  const offline = npm('--offline');
  const { status, stderr } = offline.status === 0 ? offline : npm('--prefer-offline');
  expect(status, stderr).toBe(0);
};

beforeAll(async () => {
  folder = await temporaryDirectory();
  out = join(folder.path, 'release');
  project = join(folder.path, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  const args = ['release/release.mjs', '--only', 'npm', '--out', out];
  const env = withCallersCertificates(process.env);
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  install(readdirSync(join(out, 'npm')).map((name) => join(out, 'npm', name)));
}, SLOW_MS);
afterAll(async () => {
  for (const program of programs.reverse()) {
    program.signal('SIGTERM');
    await program.waitForExit();
  }
  await folder.close();
});

it('each has its texts, and depends on no private package', () => {
  for (const name of ['hatchway', 'hatchway-client', 'hatchway-server']) {
    const files = readdirSync(join(project, 'node_modules', name));
    for (const file of ['LICENSE', 'README.md', 'THIRD_PARTY_NOTICES.txt']) expect(files, name).toContain(file);
  }
  expect(existsSync(join(project, 'node_modules/@tunnel'))).toBe(false);
});

it('server and client publish a page, which the platform lists', { timeout: SLOW_MS }, async () => {
  const dataDir = join(folder.path, 'data');
  const config = join(folder.path, 'server.toml');
  const ports = ['control_port', 'api_port', 'metrics_port', 'http_port', 'https_port'].map((key) => `${key} = 0`);
  writeFileSync(config, `[server]\n${ports.join('\n')}\n[platform]\nport = 0\n`);
  const server = await start(bin('tunnel-server'), ['stack', '--config', config, '--data-dir', dataDir]);
  await server.waitForLine(/is ready/, { timeoutMs: SLOW_MS });
  const run = JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) as Record<string, string>;
  for (const [path, type] of [
    ['/app/', 'text/html'],
    ['/docs', 'text/html'],
  ] as const) {
    const page = await fetch(`${run['platform_url']}${path}`);
    expect([path, page.status]).toEqual([path, 200]);
    expect(page.headers.get('content-type')).toContain(type);
  }

  const app = createServer((_, response) => void response.end('from the app'));
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
  const { port } = app.address() as AddressInfo;
  const at = ['--server', run['control'] ?? '', '--token-file', join(dataDir, 'admin-token')];
  const client = await start(bin('hatchway'), ['http', String(port), '--json', ...at]);
  const [, url = ''] = await client.waitForLine(/"public_url":"([^"]+)"/);
  expect(await askHttp(endpointOf(url))).toMatchObject({ status: 200, text: 'from the app' });

  writeFileSync(
    join(project, 'share.mjs'),
    `import { connect } from 'hatchway-client';
const client = await connect({ server: '${run['control']}', token: process.argv[2] });
console.log((await client.open({ protocol: 'http', localPort: ${port} })).publicUrl);
process.once('SIGTERM', () => client.close().then(() => process.exit()));
`,
  );
  const token = readFileSync(join(dataDir, 'admin-token'), 'utf8').trim();
  const library = await start(process.execPath, [join(project, 'share.mjs'), token]);
  const [shared] = await library.waitForLine(/^http:\S+$/);
  expect((await askHttp(endpointOf(shared))).text).toBe('from the app');
  app.close();
  app.closeAllConnections();
});

it('tunnel and tunnel-mcp are the same program', () => {
  const version = (name: string, args: readonly string[]) =>
    spawnSync(bin(name), args, { env: cleanEnv(), encoding: 'utf8' }).stdout;
  expect(version('tunnel', ['--version'])).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(version('hatchway', ['--version'])).toBe(version('tunnel', ['--version']));
  expect(version('tunnel-mcp', ['--help'])).toContain('Usage: tunnel mcp');
});

it('the same commit gives the same bytes', { timeout: SLOW_MS }, () => {
  const again = join(folder.path, 'again');
  const args = ['release/release.mjs', '--only', 'npm', '--out', again];
  expect(spawnSync(process.execPath, args, { cwd: ROOT }).status).toBe(0);
  for (const name of readdirSync(join(out, 'npm'))) {
    expect(readFileSync(join(again, 'npm', name)).equals(readFileSync(join(out, 'npm', name))), name).toBe(true);
  }
});
