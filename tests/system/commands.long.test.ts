// Every command of the client as a real program: its help, and a run that succeeds. `npm run try:executables` runs these tests with a single
// executable, in a root file system that has nothing else (TUNNEL_BIN).
import { spawn } from 'node:child_process';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, startEchoServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../../apps/cli/src/all-commands.ts';
import { makeTestIo } from '../../apps/cli/src/io/io.fixture.ts';
import { ROOT } from '../repo/checkout.fixture.ts';
import { askHttp, endpointOf, startWeb, type WebService } from './http-tunnels.fixture.ts';
import { Harness } from './in-process.fixture.ts';
import { McpProgram } from './mcp-program.fixture.ts';
import { becomesDirect, connectTo, dial, publish } from './p2p.fixture.ts';
import { Person, startPlatform } from './platform-test.fixture.ts';
import { type Stack, TLS_CERT, withoutOurEnvironment } from './stack.fixture.ts';
import { commandOf, TUNNEL_BIN } from './tunnel-program.fixture.ts';

/** Clients are programs; the server runs inside the test's process. */
const shared = new Harness();
const clients = { programs: true } as const;
let stack: Stack;
let web: WebService;
let home: string;
beforeAll(async () => {
  stack = await startPlatform(shared, { fixedPorts: true, tables: '[load_balancing]\nenabled = true' });
  web = shared.use(await startWeb((_, response) => void response.end('from the local service')));
  home = await shared.folder();
});
afterAll(() => shared.close());

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the program to its end. The user has only a home folder. */
const tunnel = (args: readonly string[], input = ''): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const { command, args: all } = commandOf(args);
    const child = spawn(command, all, { cwd: home, env: { ...withoutOurEnvironment(), HOME: home } });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, out, err }));
    child.stdin.end(input);
  });

const succeeds = async (args: readonly string[], input = ''): Promise<string> => {
  const { code, out, err } = await tunnel(args, input);
  expect(code, `tunnel ${args.join(' ')}\n${out}${err}`).toBe(0);
  return out;
};

type Command = Awaited<ReturnType<typeof buildProgram>>;
const pathsBelow = (command: Command, words: readonly string[]): string[][] =>
  command.commands.flatMap((below) => {
    const path = [...words, below.name()];
    return [path, ...pathsBelow(below, path)];
  });
const COMMANDS = [[], ...pathsBelow(await buildProgram(makeTestIo({ home: '/nowhere' }), () => {}), [])];

it('prints the version', async () => {
  expect(await succeeds(['--version'])).toMatch(/^\d+\.\d+\.\d+\n$/);
});

describe('help', () => {
  it.concurrent.each(COMMANDS.map((words) => [`tunnel ${words.join(' ')}`.trim(), words] as const))(
    '%s --help',
    async (_, words) => {
      expect(await succeeds([...words, '--help'])).toContain(`Usage: tunnel${words.length > 0 ? ' ' : ''}`);
    },
  );
});

describe('without a server', () => {
  it('policy', async () => {
    writeFileSync(join(home, 'policy.yml'), 'rules:\n  - match: { path: [/admin] }\n    deny: 404\n');
    expect(await succeeds(['policy', 'check', 'policy.yml'])).toContain('policy.yml is good');
    expect(await succeeds(['policy', 'test', 'policy.yml', '--request', 'GET /admin', '--expect', '404'])).toContain(
      '404',
    );
  });

  it('check', async () => {
    const config = join(await shared.folder(), 'config.yml');
    writeFileSync(config, 'tunnels:\n  web: { proto: http, local_port: 3000 }\n', { mode: 0o600 });
    await succeeds(['check', '--config', config]);
  });

  it.each(['bash', 'zsh', 'fish'])('completion %s', async (shell) => {
    expect(await succeeds(['completion', shell])).toContain('__complete');
  });

  it('completes words for a shell', async () => {
    expect(await succeeds(['__complete', 'names'])).toBe('');
  });

  it('group-key, p2p secret', async () => {
    expect(await succeeds(['group-key'])).toMatch(/\S{40}/);
    expect(await succeeds(['p2p', 'secret'])).toMatch(/^\S{43}\n$/);
  });

  it('service install names the program', async () => {
    const unit = await succeeds(['service', 'install', '--print']);
    const start = /^ExecStart=(.*)$/m.exec(unit)?.[1] ?? '';
    const isScript = TUNNEL_BIN.endsWith('.mjs');
    expect(start).toMatch(isScript ? /^\S+node \S+tunnel\.\w+ start --config / : /^\S*tunnel\S* start --config /);
  });
});

describe('with a server', () => {
  const at = () => ['--server', stack.control, '--token-file', stack.tokenFile];

  it('http', async () => {
    const program = await shared.run(['http', String(web.port), '--json', ...at()], clients);
    const { public_url: url } = await program.ready();
    expect(await askHttp(endpointOf(url))).toMatchObject({ status: 200, text: 'from the local service' });
  });

  it('files', async () => {
    const folder = await shared.folder();
    writeFileSync(join(folder, 'index.html'), 'a page');
    const program = await shared.run(['files', folder, '--json', ...at()], clients);
    const { public_url: url } = await program.ready();
    expect((await askHttp(endpointOf(url))).text).toBe('a page');
  });

  it('tcp', async () => {
    const echo = shared.use(await startEchoServer());
    const program = await shared.tcp(stack, echo.port, clients);
    const { assigned_port: port } = await program.ready();
    const socket = dial(shared, port);
    socket.write('over tcp');
    const [text] = await new Promise<string[]>((resolve) => socket.once('data', (data) => resolve([data.toString()])));
    expect(text).toBe('over tcp');
  });

  it('udp', async () => {
    const program = await shared.udp(stack, 5353, clients);
    expect((await program.ready()).public_url).toMatch(/^udp:/);
  });

  it('tls', async () => {
    const secure = await shared.stack({ tls: true });
    const flags = ['--subdomain', 'vault', '--tls', '--ca-file', TLS_CERT];
    const program = await shared.tls(secure, 8443, { ...clients, flags });
    expect((await program.ready()).public_url).toMatch(/^\w+:\/\/vault\./);
  });

  it('p2p, with a direct connection', async () => {
    const echo = shared.use(await startEchoServer());
    const publisherHome = await shared.folder();
    const publisher = await publish(shared, stack, 'desk', echo.port, { ...clients, home: publisherHome });
    const subscriber = await connectTo(shared, stack, 'desk', clients);
    const socket = dial(shared, subscriber.port);
    socket.write('between peers');
    await new Promise((resolve) => socket.once('data', resolve));
    await becomesDirect(publisher.program, subscriber.program);
    if (TUNNEL_BIN.endsWith('.mjs')) return;
    const folder = join(publisherHome, '.tunnel/native');
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^udx-[0-9a-f]{16}\.node$/)]);
  });

  it('doctor', async () => {
    const { code, out, err } = await tunnel(['doctor', ...at()]);
    expect([0, 1], err).toContain(code);
    expect(out).toMatch(/server|edge/i);
  });

  it('mcp', async () => {
    const program = await shared.run(['mcp', ...at()], clients);
    const mcp = new McpProgram(program);
    await mcp.ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    expect((await mcp.ask('tools/list'))['tools']).not.toEqual([]);
  });
});

describe('with an account', () => {
  it('login, and everything after it', async () => {
    const person = await Person.signUp(stack, 'commands');
    const login = ['login', '--platform', stack.run.platform_url, '--email', person.email, '--password-stdin'];
    expect(await succeeds(login, 'correct horse battery\n')).toContain(`Server set to ${stack.control}`);
    expect(await succeeds(['keys', 'list'])).toContain('this computer');
    expect(await succeeds(['reserve', 'shop'])).toContain('shop');
    expect(await succeeds(['reservations'])).toContain('shop');

    const client = await shared.run(['http', String(web.port), '--subdomain', 'shop', '--json'], { ...clients, home });
    const { public_url: url, tunnel_id: id } = await client.ready();
    expect((await askHttp(endpointOf(url), { path: '/hook' })).text).toBe('from the local service');
    await eventually(async () => expect((await tunnel(['requests', 'shop'])).out).toContain('/hook'), {
      timeoutMs: 20_000,
    });
    expect(await succeeds(['list'])).toContain('shop');
    expect(await succeeds(['status'])).toContain('shop');
    await succeeds(['ready']);
    expect(await succeeds(['logs'])).not.toBe('');
    const [request = ''] = (await succeeds(['requests', 'shop', '--json'])).split('\n');
    await succeeds(['replay', (JSON.parse(request) as { id: string }).id]);
    await succeeds(['add', 'udp', '5353']);
    await succeeds(['add', 'tcp', String(web.port)]);
    await succeeds(['remove', 'udp-5353']);
    for (const args of [['usage'], ['billing'], ['domains'], ['groups', '--api', stack.run.api_url]])
      await succeeds(args);
    await succeeds(['close', id, '--yes']);
    await succeeds(['stop']);
    expect(await client.exitCode()).toBe(0);
    expect(await succeeds(['release', 'shop', '--yes'])).toContain('shop');
    await succeeds(['logout']);
  });
});

it('the program of these tests is the one of TUNNEL_BIN', () => {
  expect(TUNNEL_BIN).toBe(process.env['TUNNEL_BIN'] ?? join(ROOT, 'apps/cli/bin/tunnel.mjs'));
});
