// Tests of the folder examples/: each example runs as its README says, apart from ports and addresses. Examples for containers and clusters
// are read and checked; try:image and try:helm check them with the programs of Compose and Kubernetes.
import { createHmac } from 'node:crypto';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, type Program, spawnProgram } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../repo/checkout.fixture.ts';
import { askHttp, endpointOf } from './http-tunnels.fixture.ts';
import { type Harness, it } from './in-process.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';
import { TUNNEL_BIN } from './tunnel-program.fixture.ts';

const EXAMPLES = join(ROOT, 'examples');
const GROUPS = { tables: '[load_balancing]\nenabled = true' } as const;

/** Copies an example as a user would, next to an installed library. */
const copyOf = async (harness: Harness, name: string): Promise<string> => {
  const folder = await harness.folder();
  await cp(join(EXAMPLES, name), folder, { recursive: true });
  await mkdir(join(folder, 'node_modules'));
  await symlink(join(ROOT, 'packages/client'), join(folder, 'node_modules/hatchway-client'));
  return folder;
};

const keyOf = async ({ tokenFile }: Stack): Promise<string> => (await readFile(tokenFile, 'utf8')).trim();

const node = async (
  harness: Harness,
  cwd: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Program> =>
  harness.use(
    await spawnProgram({
      command: process.execPath,
      args,
      cwd,
      env: { ...withoutOurEnvironment(), HOME: cwd, ...env },
    }),
  );

/** Runs `tunnel start` with the config file of an example. */
const start = (harness: Harness, stack: Stack, folder: string, env: Record<string, string> = {}) =>
  harness.run(
    [
      'start',
      '--config',
      join(folder, 'config.yml'),
      '--server',
      stack.control,
      '--token-file',
      stack.tokenFile,
      '--json',
    ],
    { env },
  );

describe('library', () => {
  it('publishes its app, prints each request, keeps its URL after a restart, and exits with 0 on Ctrl-C', async ({
    harness,
  }) => {
    const stack = await harness.stack();
    const folder = await copyOf(harness, 'library');
    const env = { TUNNEL_API_KEY: await keyOf(stack), PORT: String(await freePort()) };
    const urls: string[] = [];
    for (let run = 0; run < 2; run += 1) {
      const app = await node(harness, folder, ['publish.mjs', stack.control], env);
      const [publicUrl = ''] = await app.waitForLine(/^http:\/\/\S+$/);
      urls.push(publicUrl);
      expect(await askHttp(endpointOf(publicUrl), { path: '/a?b=c' })).toMatchObject({ text: 'Hello, 127.0.0.1\n' });
      await app.waitForLine(/^GET \/a\?b=c 200 \d+ ms$/);
      app.signal('SIGINT');
      expect(await app.waitForExit()).toEqual({ code: 0, signal: null });
      expect(app.stderr).toEqual([]);
    }
    expect(urls[1]).toBe(urls[0]);
  });

  it('reports a missing key with its remedy and without a stack trace', async ({ harness }) => {
    const folder = await copyOf(harness, 'library');
    const app = await node(harness, folder, ['publish.mjs'], { PORT: String(await freePort()) });
    expect(await app.waitForExit()).toEqual({ code: 1, signal: null });
    expect(app.stderr).toHaveLength(1);
    expect(app.stderr[0]).toMatch(/API key.*TUNNEL_API_KEY/);
  });
});

describe('webhook', () => {
  const SECRET = 'a secret that the sender knows too';
  const signatureOf = (body: string, secret = SECRET): Record<string, string> => ({
    'x-github-event': 'ping',
    'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  });

  it('the receiver accepts signed events only, and the edge rejects everything else before the receiver sees it', async ({
    harness,
  }) => {
    const stack = await harness.stack();
    const folder = await copyOf(harness, 'webhook');
    const port = await freePort();
    const env = { WEBHOOK_SECRET: SECRET, PORT: String(port) };
    const receiver = await node(harness, folder, ['receiver.mjs'], env);
    await receiver.waitForLine(/^waiting for webhooks/);
    const local = { host: 'localhost', port };
    const body = await readFile(join(folder, 'event.json'), 'utf8');
    const path = '/hooks/github';
    const post = { method: 'POST', path, body };

    expect(await askHttp(local, { ...post, headers: signatureOf(body, 'another') })).toMatchObject({ status: 401 });
    expect(await askHttp(local, post)).toMatchObject({ status: 401 });
    expect(await askHttp(local, { path: '/' })).toMatchObject({ status: 404 });
    const huge = 'x'.repeat(2 * 1024 * 1024);
    expect(await askHttp(local, { ...post, body: huge, headers: signatureOf(huge) })).toMatchObject({ status: 413 });
    expect(await askHttp(local, { ...post, body: '{', headers: signatureOf('{') })).toMatchObject({ status: 400 });

    const policy = ['--policy', join(folder, 'hooks.yml'), '--server', stack.control, '--token-file', stack.tokenFile];
    const tunnel = await harness.run(['http', String(port), '--json', ...policy], { env });
    const endpoint = endpointOf((await tunnel.ready()).public_url);
    expect(receiver.stdout).toHaveLength(1);
    expect(await askHttp(endpoint, { ...post, headers: signatureOf(body, 'another') })).toMatchObject({ status: 403 });
    expect(await askHttp(endpoint, { path: '/' })).toMatchObject({ status: 404 });
    expect(await askHttp(endpoint, { ...post, headers: signatureOf(body) })).toMatchObject({ status: 202 });
    await receiver.waitForLine(/^ping: Keep it logically awesome\.$/);
    expect(receiver.stdout).toHaveLength(2);
    expect(receiver.stderr).toEqual([]);
  });
});

describe('static-site', () => {
  it('serves the folder with security headers, and drafts with a password only', async ({ harness }) => {
    const stack = await harness.stack();
    const folder = await copyOf(harness, 'static-site');
    await writeFile(join(folder, 'users.txt'), 'ann:a password for ann\n');
    const tunnel = await start(harness, stack, folder);
    const endpoint = endpointOf((await tunnel.ready()).public_url);
    expect(endpoint.host).toMatch(/^handbook\./);

    const page = await askHttp(endpoint);
    expect(page).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(page.headers).toMatchObject({
      'content-security-policy': "default-src 'self'",
      'x-content-type-options': 'nosniff',
    });
    const styles = /href="(\/style\.css)"/.exec(page.text)?.[1] ?? '';
    expect(await askHttp(endpoint, { path: styles })).toMatchObject({ status: 200 });
    const path = /href="(\/drafts\/)"/.exec(page.text)?.[1] ?? '';
    expect(await askHttp(endpoint, { path })).toMatchObject({ status: 401 });
    const authorization = `Basic ${Buffer.from('ann:a password for ann').toString('base64')}`;
    expect(await askHttp(endpoint, { path, headers: { authorization } })).toMatchObject({ status: 200 });
    expect(await askHttp(endpoint, { path: '/manual/start' })).toMatchObject({
      status: 301,
      headers: { location: '/', 'content-security-policy': "default-src 'self'" },
    });
  });
});

/** Returns the words of a command line in a README. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');

it('static-site: the policy tests in the README succeed', async ({ harness }) => {
  const home = await copyOf(harness, 'static-site');
  await writeFile(join(home, 'users.txt'), 'ann:a password for ann\n');
  const commands = (await readFile(join(home, 'README.md'), 'utf8')).match(/^tunnel policy test .*$/gm) ?? [];
  expect(commands).toHaveLength(3);
  for (const command of commands) {
    const test = await harness.run(wordsOf(command).slice(1), { home });
    expect(await test.exitCode(), `${command}\n${test.stdout.join('\n')}${test.stderr.join('\n')}`).toBe(0);
  }
});

describe('group-failover', () => {
  it('fails no visit while the app of one member stops and starts again', async ({ harness }) => {
    const stack = await harness.stack(GROUPS);
    const folder = await copyOf(harness, 'group-failover');
    const env = { TUNNEL_API_KEY: await keyOf(stack) };
    const demo = await node(harness, folder, ['failover.mjs', stack.control], env);
    expect(await demo.waitForExit(), [...demo.stdout, ...demo.stderr].join('\n')).toEqual({ code: 0, signal: null });
    expect(demo.stdout.slice(1, -1)).toEqual([
      expect.stringMatching(/^[ab] is healthy$/),
      expect.stringMatching(/^[ab] is healthy$/),
      'the app of a stops',
      'a is unhealthy',
      'the app of a starts again',
      'a is healthy',
    ]);
    expect(demo.stdout.at(-1)).toMatch(/^visits: [1-9]\d* by a, [1-9]\d* by b, 0 failed$/);
    expect(demo.stderr).toEqual([]);
  });
});

describe('mcp-hosts', () => {
  /** Creates a folder with the command `tunnel`, for PATH. */
  const commandFolder = async (harness: Harness): Promise<string> => {
    const folder = await harness.folder();
    await symlink(TUNNEL_BIN, join(folder, 'tunnel'));
    return folder;
  };
  const filesOf = async (): Promise<string[]> =>
    (await readdir(join(EXAMPLES, 'mcp-hosts'), { recursive: true })).filter((name) => name.includes('/'));

  /** Reads the entry in the file of Codex. */
  const entryOf = (toml: string) => {
    const [, name = '', command, args = ''] =
      /^\[mcp_servers\.(\w+)\]\ncommand = "(.*)"\nargs = (.*)\n$/.exec(toml) ?? [];
    return { servers: { [name]: { command, args: JSON.parse(args) } } };
  };

  it('each configuration starts `tunnel mcp` with the same arguments, and the README names each file', async () => {
    const files = await filesOf();
    expect(files).toHaveLength(5);
    const readme = await readFile(join(EXAMPLES, 'mcp-hosts/README.md'), 'utf8');
    for (const file of files) {
      const text = await readFile(join(EXAMPLES, 'mcp-hosts', file), 'utf8');
      const { mcpServers, servers } = file.endsWith('.toml') ? entryOf(text) : JSON.parse(text);
      expect(mcpServers ?? servers, file).toMatchObject({
        tunnel: { command: 'tunnel', args: ['mcp', '--allow', '127.0.0.1:3000'] },
      });
      expect(readme).toContain(`(${file})`);
    }
  });

  it('check.mjs starts the server of a file and lists its tools', async ({ harness }) => {
    const folder = await copyOf(harness, 'mcp-hosts');
    const env = { PATH: `${await commandFolder(harness)}:${process.env['PATH']}` };
    for (const file of ['vscode/mcp.json', 'claude-code/.mcp.json']) {
      const check = await node(harness, folder, ['check.mjs', file], env);
      expect(await check.waitForExit()).toEqual({ code: 0, signal: null });
      expect(check.stdout).toEqual([expect.stringMatching(/^tunnel: .*\bopen_tunnel\b.*\bwait_for_request\b/)]);
    }
  });

  it('check.mjs fails if the command of a file does not exist', async ({ harness }) => {
    const folder = await copyOf(harness, 'mcp-hosts');
    await writeFile(join(folder, 'wrong.json'), '{"mcpServers":{"tunnel":{"command":"no-such-command"}}}');
    const check = await node(harness, folder, ['check.mjs', 'wrong.json']);
    expect((await check.waitForExit()).code).not.toBe(0);
  });
});

interface ComposeService {
  readonly image: string;
  readonly networks: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
}
interface ComposeFile {
  readonly services: Record<string, ComposeService>;
  readonly networks: Record<string, { readonly internal?: boolean } | null>;
  readonly secrets: Record<string, { readonly file: string }>;
}

describe('compose-sidecar', () => {
  const read = async (name: string): Promise<string> => readFile(join(EXAMPLES, 'compose-sidecar', name), 'utf8');

  it('only the client has a network to the outside, no service publishes a port, and the tunnels name services', async () => {
    const compose = parse(await read('compose.yml')) as ComposeFile;
    const isOutside = (name: string): boolean => compose.networks[name]?.internal !== true;
    const outside = Object.entries(compose.services).filter(([, { networks }]) => networks.some(isOutside));
    expect(outside.map(([name]) => name)).toEqual(['client']);
    expect(Object.values(compose.services).flatMap(({ ports = [] }) => ports)).toEqual([]);
    const { tunnels } = parse(await read('config.yml')) as { tunnels: Record<string, Record<string, unknown>> };
    const hosts = Object.values(tunnels).flatMap(({ local_host: host, services }) => [
      host,
      ...Object.values(services as Record<string, string>).map((target) => target.split(':')[0]),
    ]);
    expect(hosts.filter((host) => !(String(host) in compose.services))).toEqual([]);
  });

  it('the client accepts config.yml and sends /api/ to the API', async ({ harness }) => {
    const check = await harness.run(['check', '--config', join(EXAMPLES, 'compose-sidecar/config.yml')]);
    expect(await check.exitCode(), check.stderr.join('\n')).toBe(0);
    const { tunnels } = parse(await read('config.yml')) as { tunnels: { shop: { policy: object[] } } };
    const home = await harness.folder();
    // JSON is YAML.
    await writeFile(join(home, 'rules.yml'), JSON.stringify(tunnels.shop.policy));
    const test = ['policy', 'test', 'rules.yml', '--services', 'api', '--request'];
    const toApi = await harness.run([...test, 'GET /api/users', '--expect', 'pass'], { home });
    expect(await toApi.exitCode(), toApi.stderr.join('\n')).toBe(0);
    expect(toApi.stdout.join('\n')).toContain('to api');
    const toWeb = await harness.run([...test, 'GET /', '--expect', 'pass'], { home });
    expect(await toWeb.exitCode()).toBe(0);
    expect(toWeb.stdout.join('\n')).not.toContain('to api');
  });
});

describe('kubernetes-client', () => {
  it('the client accepts the tunnels in the values', async ({ harness }) => {
    const { client } = parse(await readFile(join(EXAMPLES, 'kubernetes-client/values.yaml'), 'utf8')) as {
      client: { server: string; tunnels: object; extraEnv: { name: string }[] };
    };
    const file = join(await harness.folder(), 'config.yml');
    // JSON is YAML.
    await writeFile(file, JSON.stringify({ server: client.server, tunnels: client.tunnels }));
    const env = Object.fromEntries(client.extraEnv.map(({ name }) => [name, 'a value from a Secret']));
    const check = await harness.run(['check', '--config', file], { env });
    expect(await check.exitCode(), check.stderr.join('\n')).toBe(0);
  });
});

describe('README.md', () => {
  it('lists every example, each with a README', async () => {
    const folders = (await readdir(EXAMPLES, { withFileTypes: true })).filter((entry) => entry.isDirectory());
    const readme = await readFile(join(EXAMPLES, 'README.md'), 'utf8');
    const listed = [...readme.matchAll(/^\| \[([\w-]+)\]\(\1\)/gm)].map(([, name]) => name);
    expect(new Set(listed)).toEqual(new Set(folders.map(({ name }) => name)));
    for (const { name } of folders) expect(await readFile(join(EXAMPLES, name, 'README.md'), 'utf8')).toMatch(/^# /);
  });
});
