import { createSocket, type Socket } from 'node:dgram';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import {
  eventually,
  startUdpEcho,
  startUdpService,
  type TemporaryDirectory,
  temporaryDirectory,
  type UdpService,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';
import { eventOf, Runs, type Started } from '../run/runs.fixture.ts';

const PORTS = [31_700, 31_739] as const;

let home: TemporaryDirectory;
let edge: Edge;
let echo: UdpService;
let flags: string[];
const runs = new Runs();
const visitors: Socket[] = [];

beforeEach(async () => {
  home = await temporaryDirectory();
  echo = await startUdpEcho();
  edge = await startEdge({ limits: { udp_port_range: [...PORTS] } });
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin', '--drain-secs', '0'];
});
afterEach(async () => {
  for (const visitor of visitors.splice(0)) visitor.close();
  await runs.end();
  await edge.stop({ drainMs: 0 });
  await echo.close();
  await home.close();
});

const start = (args: string[], options: Partial<TestIoOptions> = {}): Started => {
  const io = makeTestIo({ home: home.path, ...options });
  return runs.start(args, io);
};

/** Sends the datagram repeatedly until a reply arrives, because a datagram can be lost silently. */
const ask = async (port: number, text: string): Promise<string> => {
  const visitor = createSocket('udp4');
  visitors.push(visitor);
  const heard: string[] = [];
  visitor.on('message', (bytes) => heard.push(String(bytes)));
  return eventually(() => {
    visitor.send(text, port, '127.0.0.1');
    expect(heard.length).toBeGreaterThan(0);
    return heard[0] as string;
  });
};

describe('`tunnel udp`', () => {
  it('publishes a local service, reports address and datagram path, and exits with 0 on SIGINT', async () => {
    const { io, code } = start(['udp', String(echo.port), ...flags, '--json', '--drain-secs', '30']);
    const ready = await eventOf(io, 'ready');
    expect(ready).toMatchObject({
      public_url: `udp://localhost:${String(ready['assigned_port'])}`,
      name: `udp-${echo.port}`,
      protocol: 'udp',
      local: `127.0.0.1:${echo.port}`,
      inspect_url: null,
      group: null,
    });
    expect(await eventOf(io, 'datagrams')).toMatchObject({ name: `udp-${echo.port}`, path: 'carrier' });
    expect(await ask(ready['assigned_port'] as number, 'hello')).toBe('hello');
    io.signal('SIGINT');
    expect(await code).toBe(0);
    expect(io.events().at(-1)).toMatchObject({ event: 'closed', exit_code: 0 });
  });

  it('uses the given port and name, and sends the service a PROXY v2 header', async () => {
    const service = await startUdpService(() => Buffer.from('ok'));
    const port = PORTS[0] + 5;
    const args = ['--remote-port', String(port), '--name', 'game', '--idle', '30', '--proxy-protocol', 'v2'];
    const { io } = start(['udp', String(service.port), ...args, ...flags]);
    await eventually(() => expect(io.out()).toContain(`game: udp://localhost:${port} -> 127.0.0.1:${service.port}`));
    expect(io.out()).toMatch(/game: datagrams /);
    expect(await ask(port, 'hello')).toBe('ok');
    const first = service.received[0]?.bytes ?? Buffer.alloc(0);
    expect(first.subarray(0, 16).toString('hex')).toBe('0d0a0d0a000d0a515549540a2112000c');
    expect([first.readUInt16BE(26), String(first.subarray(28))]).toEqual([port, 'hello']);
    await service.close();
  });

  it("exits with 4 and the edge's message for a port outside the edge's range", async () => {
    const { io, code } = start(['udp', '53', '--remote-port', '99', ...flags]);
    expect(await code).toBe(4);
    expect(io.err()).toContain(`port 99 is not allowed: use ${PORTS[0]}-${PORTS[1]}`);
  });

  it('exits with 4 when the edge has udp switched off', async () => {
    const other = await startEdge({ udp: { enabled: false } });
    const { io, code } = start([
      'udp',
      '53',
      '--server',
      `127.0.0.1:${other.addresses.control.port}`,
      '--token',
      'admin',
    ]);
    expect(await code).toBe(4);
    expect(io.err()).toContain('udp tunnels are switched off on this edge');
    await other.stop({ drainMs: 0 });
  });

  it('reports a local service that is down, and works again when the service is back', async () => {
    const { port } = echo;
    await echo.close();
    const { io } = start(['udp', String(port), ...flags, '--json']);
    const publicPort = (await eventOf(io, 'ready'))['assigned_port'] as number;
    const visitor = createSocket('udp4');
    visitors.push(visitor);
    const error = await eventually(() => {
      visitor.send('anybody?', publicPort, '127.0.0.1');
      const found = io.events().find(({ event }) => event === 'error');
      expect(found).toBeDefined();
      return found;
    });
    expect(error).toMatchObject({ code: 'CLIENT_LOCAL_DIAL', fatal: false, name: `udp-${port}` });
    echo = await startUdpEcho({ port });
    expect(await ask(publicPort, 'back')).toBe('back');
  });

  it.each([
    ['an idle time below 5 s', ['--idle', '4'], 'Use 5-3600.'],
    ['PROXY v1', ['--proxy-protocol', 'v1'], 'Use v2.'],
    ['a group', ['--group', 'g'], "unknown option '--group'"],
    ['a subdomain', ['--subdomain', 'a'], "unknown option '--subdomain'"],
    ['a public port that is none', ['--remote-port', '0'], 'Use 1-65535.'],
  ])('exits with 2 before connecting for %s', async (_, args, words) => {
    const { io, code } = start(['udp', '53', ...args, '--server', '127.0.0.1:1', '--token', 'x']);
    expect(await code).toBe(2);
    expect(io.err()).toContain(words);
  });

  it('has help with an example', async () => {
    const { io, code } = start(['udp', '--help']);
    expect(await code).toBe(0);
    for (const word of ['--remote-port', '--idle', '--proxy-protocol', '--local-host', '$ tunnel udp 53']) {
      expect(io.out()).toContain(word);
    }
  });
});

describe('udp in config.yml', () => {
  const write = (entries: string): string => {
    const file = join(home.path, 'tunnel.yml');
    writeFileSync(file, `tunnels:\n${entries}`);
    return file;
  };

  it('is opened next to tunnels of other kinds, each with the keys of its protocol', async () => {
    const port = PORTS[0] + 7;
    const file = write(
      `  dns: { proto: udp, local_port: ${echo.port}, remote_port: ${port}, idle_secs: 60 }\n  db: { proto: tcp, local_port: 1 }\n  web: { proto: http, local_port: 2 }\n`,
    );
    const { io } = start(['start', '--config', file, ...flags, '--json']);
    await eventually(() => expect(io.events().filter(({ event }) => event === 'ready')).toHaveLength(3));
    expect(await ask(port, 'hello')).toBe('hello');
    expect(io.events().filter(({ event }) => event === 'datagrams').length).toBeGreaterThan(0);
    const check = start(['check', '--config', file]);
    expect(await check.code).toBe(0);
    expect(check.io.out()).toContain(`dns: udp 127.0.0.1:${echo.port}`);
  });

  it.each([
    ['subdomain: a', '`tunnels.dns.subdomain` must be left out unless `proto` is "http" or "https" or "tls", got "a"'],
    ['idle_secs: 4', '`tunnels.dns.idle_secs` must be a whole number from 5 to 3600, got 4'],
    ['proxy_protocol: v1', '`tunnels.dns.proxy_protocol` must be one of "v2", got "v1"'],
    ['group: g', 'groups exist for http and tcp tunnels only'],
    ['health_check: { type: tcp }', 'health_check exists for http and tcp tunnels only'],
  ])('is refused with exit code 2 and the line for %s', async (key, words) => {
    const file = write(`  dns:\n    proto: udp\n    local_port: 53\n    ${key}\n`);
    for (const command of [['check'], ['start', '--server', '127.0.0.1:1', '--token', 'x']]) {
      const { io, code } = start([...command, '--config', file]);
      expect(await code).toBe(2);
      expect(io.err()).toContain(`${file}:5: `);
      expect(io.err()).toContain(words);
    }
  });
});
