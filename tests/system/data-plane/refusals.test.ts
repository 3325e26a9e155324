// Tests of starts that cannot succeed: the problem is reported in a clear line, with the exit code for its kind, and never in a loop.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  claimPortBlock,
  eventually,
  FastClock,
  startEchoServer,
  startSinkServer,
  startTcpServer,
} from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';
import { sendAndReadAll } from '../visitor.fixture.ts';

const FIRST_CONNECT_MS = 30_000;
/** Returns a clock on which the 30 s of the first connection attempt pass in a second. */
const fastClock = (): FastClock => new FastClock(30);

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack({ tcpPorts: 8 });
});
afterAll(() => shared.close());

/** Expects two lines on stderr: the problem, and the remedy. */
const expectComplaint = (program: TunnelProgram, what: string | RegExp, next: string): void => {
  expect(program.stderr).toEqual([
    typeof what === 'string' ? `tunnel: ${what}` : expect.stringMatching(what),
    expect.stringContaining(next),
  ]);
};

const writeConfig = (home: string, lines: readonly string[]): string => {
  const file = join(home, '.tunnel', 'config.yml');
  mkdirSync(join(home, '.tunnel'));
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
};

describe.concurrent('an unreachable server', () => {
  it('ends the first start with 5 after 30 s if no program listens', async ({ harness }) => {
    const { fixed } = harness.use(await claimPortBlock());
    const clock = fastClock();
    const args = ['tcp', '9', '--server', `127.0.0.1:${fixed.control}`, '--token', 'any'];
    const program = await harness.run(args, { clock });
    expect(await program.exitCode()).toBe(5);
    expect(clock.monotonic()).toBeGreaterThan(FIRST_CONNECT_MS - 500);
    expectComplaint(program, `cannot reach 127.0.0.1:${fixed.control}: connection refused`, '--server');
  });

  it('ends the first start with 5 if it accepts connections but never responds', async ({ harness }) => {
    const silent = harness.use(await startSinkServer());
    const args = ['tcp', '9', '--server', `127.0.0.1:${silent.port}`, '--token', 'any'];
    const program = await harness.run(args, { clock: fastClock() });
    expect(await program.exitCode()).toBe(5);
    expectComplaint(program, /^tunnel: cannot reach 127\.0\.0\.1:\d+: no response within \d+ s$/, '--server');
  });

  it('is retried with --wait until it is up', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const late = await harness.stack({ fixedPorts: true });
    const server = late.control;
    late.program.signal('SIGTERM');
    await late.program.waitForExit();
    const program = await harness.tcp(late, echo.port, { server, flags: ['--wait'] });
    await program.waitFor('reconnecting');
    await late.start();
    expect((await sendAndReadAll((await program.ready()).assigned_port, Buffer.from('hi'))).toString()).toBe('hi');
  });

  it('of another kind ends the client with 2 at once and a message that it is no edge', async ({ harness }) => {
    const web = harness.use(
      await startTcpServer(
        (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'),
      ),
    );
    const program = await harness.run(['tcp', '9', '--server', `127.0.0.1:${web.port}`, '--token', 'any']);
    expect(await program.exitCode()).toBe(2);
    expectComplaint(program, `127.0.0.1:${web.port} is not a tunnel edge: the response was HTTP 200`, '--server');
  });
});

describe.concurrent('an API key', () => {
  it('that is wrong ends the client with 3 after a single attempt', async ({ harness }) => {
    const alone = await harness.stack();
    const program = await harness.run(['tcp', '9', '--server', alone.control, '--token', 'tnl_wrong']);
    expect(await program.exitCode()).toBe(3);
    expect(program.stderr).toEqual(['tunnel: invalid API key. Run `tunnel login`, or set TUNNEL_API_KEY.']);
    expect(await alone.metric('tunnel_auth_failures_total')).toBe(1);
  });

  it('that is missing ends the client with 2', async ({ harness }) => {
    const program = await harness.run(['tcp', '9', '--server', stack.control]);
    expect(await program.exitCode()).toBe(2);
    expect(program.stderr).toEqual(['tunnel: no API key. Run `tunnel login`, or set TUNNEL_API_KEY.']);
  });

  it('is printed neither by the client nor by the edge', async ({ harness }) => {
    const secret = 'tnl_a-secret-that-nobody-may-see';
    const args = ['tcp', '9', '--json', '--server', stack.control];
    const program = await harness.run(args, { env: { TUNNEL_API_KEY: secret, TUNNEL_DEBUG: '1' } });
    expect(await program.exitCode()).toBe(3);
    const printed = [program.stdout, program.stderr, stack.program.stdout, stack.program.stderr].flat().join('\n');
    expect(printed).not.toContain(secret);
  });
});

describe.concurrent('a config file', () => {
  it('with an unknown key ends the client with 2 and names line, key and a suggestion', async ({ harness }) => {
    const home = await harness.folder();
    const file = writeConfig(home, [
      'server: 127.0.0.1:1',
      'tunnels:',
      '  db:',
      '    proto: tcp',
      '    local_prot: 5432',
    ]);
    const program = await harness.run(['start'], { home });
    expect(await program.exitCode()).toBe(2);
    expect(program.stderr[0]).toContain(`${file}:5: unknown key \`tunnels.db.local_prot\``);
    expect(program.stderr[0]).toContain('local_port');
  });

  it('without the requested tunnel ends the client with 2 and lists its tunnels', async ({ harness }) => {
    const home = await harness.folder();
    writeConfig(home, ['tunnels:', '  db: { proto: tcp, local_port: 5432 }']);
    const program = await harness.run(['start', 'bd', '--token', 'any'], { home });
    expect(await program.exitCode()).toBe(2);
    expect(program.stderr).toEqual(["tunnel: no tunnel 'bd' in ~/.tunnel/config.yml. Available: db."]);
  });
});

describe.concurrent('a public port', () => {
  it('used by another tunnel ends the client with 4', async ({ harness }) => {
    const { assigned_port: port } = await (await harness.tcp(stack, 9)).ready();
    const second = await harness.tcp(stack, 9, { flags: ['--remote-port', String(port)] });
    expect(await second.exitCode()).toBe(4);
    expect(second.events('error')).toMatchObject([
      { code: 'TUNNEL_PORT_IN_USE', message: `port ${port} is already in use`, fatal: false },
    ]);
    expect(second.stderr[0]).toBe(`tunnel: tcp-9: port ${port} is already in use`);
  });

  it('used by another program ends the client with 4, and is never assigned automatically', async ({ harness }) => {
    const alone = await harness.stack();
    const port = alone.tcpPorts.from;
    harness.use(await startEchoServer({ port }));
    const program = await harness.tcp(alone, 9, { flags: ['--remote-port', String(port)] });
    expect(await program.exitCode()).toBe(4);
    expect(program.stderr[0]).toBe(`tunnel: tcp-9: port ${port} is already in use`);
    // Tunnels without a requested port skip the busy port.
    const others = await Promise.all([harness.tcp(alone, 9), harness.tcp(alone, 9)]);
    for (const other of others) expect((await other.ready()).assigned_port).not.toBe(port);
  });

  it('outside the allowed range ends the client with 4', async ({ harness }) => {
    const { from, to } = stack.tcpPorts;
    const program = await harness.tcp(stack, 9, { flags: ['--remote-port', '22'] });
    expect(await program.exitCode()).toBe(4);
    expect(program.stderr[0]).toBe(`tunnel: tcp-9: port 22 is not allowed: use ${from}-${to}`);
  });

  it('cannot be assigned if the range is full, and the client ends with 4', async ({ harness }) => {
    const small = await harness.stack({ tcpPorts: 2 });
    const { from, to } = small.tcpPorts;
    const first = await Promise.all([harness.tcp(small, 9), harness.tcp(small, 9)]);
    const ports = await Promise.all(first.map(async (program) => (await program.ready()).assigned_port));
    expect(new Set(ports)).toEqual(new Set([from, to]));
    const third = await harness.tcp(small, 9);
    expect(await third.exitCode()).toBe(4);
    expect(third.stderr[0]).toBe(`tunnel: tcp-9: no free port left in tcp_port_range ${from}-${to}`);
  });

  it('that is refused does not affect other tunnels of the client', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    writeConfig(home, [
      `server: ${stack.control}`,
      `auth_token_file: ${stack.tokenFile}`,
      'tunnels:',
      `  good: { proto: tcp, local_port: ${echo.port} }`,
      '  bad: { proto: tcp, local_port: 9, remote_port: 22 }',
    ]);
    const program = await harness.run(['start', '--json'], { home });
    const ready = await program.ready();
    expect(await program.waitFor('error')).toMatchObject({
      name: 'bad',
      code: 'TUNNEL_PORT_OUT_OF_RANGE',
      fatal: false,
    });
    expect((await sendAndReadAll(ready.assigned_port, Buffer.from('hi'))).toString()).toBe('hi');
    program.signal('SIGTERM');
    expect(await program.exitCode()).toBe(0);
  });

  it('taken by another program during a reconnection is requested again until it is free', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const edge = await harness.stack({ fixedPorts: true });
    const port = edge.tcpPorts.from;
    const program = await harness.tcp(edge, echo.port, { flags: ['--remote-port', String(port)] });
    await program.ready();
    edge.program.signal('SIGKILL');
    await edge.program.waitForExit();
    const stranger = await eventually(() => takePort(port));
    await edge.start();
    expect(await program.waitFor('error')).toMatchObject({ code: 'TUNNEL_PORT_IN_USE' });
    await stranger.close();
    await eventually(async () => expect((await edge.tunnels()).map((row) => row.assigned_port)).toEqual([port]), {
      timeoutMs: 30_000,
    });
    expect((await sendAndReadAll(port, Buffer.from('hi'))).toString()).toBe('hi');
    expect(program.exit).toBeNull();
  });
});

const takePort = (port: number) => startTcpServer((socket) => void socket.resume(), { port });
