import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect as dial, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { systemClock } from '@tunnel/runtime';
import {
  eventually,
  FakeClock,
  startEchoServer,
  type TcpServer,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { startEdge } from './edge.fixture.ts';
import { Runs, type Started } from './runs.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let echo: TcpServer;
let flags: string[];
const sockets: Socket[] = [];
const runs = new Runs();

beforeEach(async () => {
  home = await temporaryDirectory();
  echo = await startEchoServer();
  edge = await startEdge({ limits: { tcp_port_range: [31_200, 31_299] } });
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin'];
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await runs.end();
  await edge.stop({ drainMs: 0 });
  await echo.close();
  await home.close();
});

const start = (args: string[], options: Partial<TestIoOptions> = {}): Started => {
  const io = makeTestIo({ home: home.path, ...options });
  return runs.start(args, io);
};

const publicPort = (io: TestIo): Promise<number> =>
  eventually(() => {
    const port = io.events().find((event) => event['event'] === 'ready')?.['assigned_port'];
    expect(port).toBeTypeOf('number');
    return port as number;
  });

const visit = async (port: number, text: string): Promise<Socket> => {
  const socket = dial(port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => {});
  socket.write(text);
  expect(String((await once(socket, 'data'))[0])).toBe(text);
  return socket;
};

describe('`tunnel tcp`', () => {
  it('publishes a local service, reports its address, and exits with 0 on SIGINT', async () => {
    const { io, code } = start(['tcp', String(echo.port), ...flags, '--json']);
    const port = await publicPort(io);
    expect(io.events()[0]).toMatchObject({
      event: 'ready',
      public_url: `tcp://localhost:${port}`,
      name: `tcp-${echo.port}`,
      protocol: 'tcp',
      local: `127.0.0.1:${echo.port}`,
    });
    (await visit(port, 'hello')).destroy();
    io.signal('SIGINT');
    expect(await code).toBe(0);
    expect(io.events().at(-1)).toMatchObject({ event: 'closed', exit_code: 0 });
  });

  it('lets open connections finish after a signal, and ends at once on a second signal a second later', async () => {
    let time = 0;
    const clock = { ...systemClock, monotonic: () => time };
    const { io, code } = start(['tcp', String(echo.port), ...flags, '--json'], { clock });
    const visitor = await visit(await publicPort(io), 'hello');
    io.signal('SIGTERM');
    visitor.write('still here');
    expect(String((await once(visitor, 'data'))[0])).toBe('still here');
    time = 500;
    io.signal('SIGTERM');
    visitor.write('the same signal');
    expect(String((await once(visitor, 'data'))[0])).toBe('the same signal');
    time = 1500;
    io.signal('SIGTERM');
    expect(await code).toBe(143);
  });

  it('exits silently with 0 when its stdout is closed', async () => {
    const { io, code } = start(['tcp', String(echo.port), ...flags, '--json']);
    await publicPort(io);
    io.closeStdout();
    expect(await code).toBe(0);
    expect(io.err()).toBe('');
  });

  it('exits with 3 for an invalid API key', async () => {
    const { io, code } = start(['tcp', '80', ...flags, '--token', 'wrong']);
    expect(await code).toBe(3);
    expect(io.err()).toMatch(/^tunnel: invalid API key\. Run `tunnel login`/);
  });

  it("exits with 4 and the edge's message when its port is in use", async () => {
    const first = start(['tcp', String(echo.port), ...flags, '--json']);
    const port = await publicPort(first.io);
    const { io, code } = start(['tcp', '80', ...flags, '--remote-port', String(port), '--name', 'x']);
    expect(await code).toBe(4);
    expect(io.err()).toContain(`tunnel: x: port ${port} is already in use\n`);
  });

  it('exits with 0 on SIGINT before it is connected', async () => {
    const closed = await startEchoServer();
    await closed.close();
    const { io, code } = start(['tcp', '80', '--server', `127.0.0.1:${closed.port}`, '--token', 't', '--wait']);
    await eventually(() => expect(io.out()).toContain('connection refused'));
    io.signal('SIGINT');
    expect(await code).toBe(0);
  });

  it('redraws a status block in place on a terminal', async () => {
    const { io } = start(['tcp', String(echo.port), ...flags, '--name', 'db'], {
      isTTY: true,
      env: { NO_COLOR: '1' },
    });
    const port = await eventually(() => {
      const found = /tcp:\/\/localhost:(\d+) -> /.exec(io.out());
      expect(found).not.toBeNull();
      return Number(found?.[1]);
    });
    await visit(port, 'hello');
    await eventually(() => expect(io.out()).toContain('Traffic     1 connection, 1 open, 5 B in, 5 B out'));
    expect(io.out()).toContain('\r\u001b[5A');
  });

  it('reports a local service that refuses connections', async () => {
    await echo.close();
    const { io } = start(['tcp', String(echo.port), ...flags, '--json']);
    dial(await publicPort(io), '127.0.0.1').on('error', () => {});
    await eventually(() => expect(io.err()).toContain(`cannot connect to 127.0.0.1:${echo.port}: connection refused`));
    expect(io.events()).toContainEqual(expect.objectContaining({ event: 'error', code: 'CLIENT_LOCAL_DIAL' }));
  });
});

describe('`tunnel start`', () => {
  const configure = (tunnels: string): string[] => {
    writeFileSync(join(home.path, 'tunnel.yml'), `tunnels:\n${tunnels}`);
    return ['start', '--config', 'tunnel.yml', ...flags, '--json'];
  };

  it('keeps running while one tunnel is open, and reports refused tunnels', async () => {
    const args = configure(
      `  db: {proto: tcp, local_port: ${echo.port}}\n  web: {proto: http, local_port: 3000, subdomain: www}\n`,
    );
    const { io, code } = start(args);
    await visit(await publicPort(io), 'hello');
    await eventually(() => expect(io.err()).toContain("tunnel: web: subdomain 'www' is not valid"));
    io.signal('SIGTERM');
    for (const socket of sockets) socket.destroy();
    expect(await code).toBe(0);
  });

  it('exits with 4 when every tunnel was refused', async () => {
    const { io, code } = start(
      configure(
        '  a: {proto: tcp, local_port: 1, remote_port: 1}\n  b: {proto: http, local_port: 2, subdomain: api}\n',
      ),
    );
    expect(await code).toBe(4);
    expect(io.events().map((event) => event['event'])).toEqual(['error', 'error', 'closed']);
  });
});

describe('an unreachable server', () => {
  it('ends the client with 5 after 30 s', async () => {
    const closed = await startEchoServer();
    await closed.close();
    const clock = new FakeClock();
    const { io, code } = start(['tcp', '80', '--server', `127.0.0.1:${closed.port}`, '--token', 't'], { clock });
    let exit: number | undefined;
    void code.then((value) => {
      exit = value;
    });
    await eventually(
      async () => {
        await clock.advance(250);
        expect(exit).toBe(5);
      },
      { intervalMs: 2 },
    );
    expect(io.err()).toContain(`tunnel: cannot reach 127.0.0.1:${closed.port}: connection refused\n`);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(30_000);
  });
});
