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
import { startEdge } from './edge.fixture.ts';
import { run } from './run.ts';
import { makeWorld, type World, type WorldOptions } from './world.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let echo: TcpServer;
let flags: string[];
const sockets: Socket[] = [];
const runs: { world: World; code: Promise<number> }[] = [];

beforeEach(async () => {
  home = await temporaryDirectory();
  echo = await startEchoServer();
  edge = await startEdge({ limits: { tcp_port_range: [31_200, 31_299] } });
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin'];
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const { world, code } of runs.splice(0)) {
    world.signal('SIGTERM');
    await code;
  }
  await edge.stop({ drainMs: 0 });
  await echo.close();
  await home.close();
});

const start = (args: string[], options: Partial<WorldOptions> = {}): { world: World; code: Promise<number> } => {
  const world = makeWorld({ home: home.path, ...options });
  const started = { world, code: run(args, world) };
  runs.push(started);
  return started;
};

const publicPort = (world: World): Promise<number> =>
  eventually(() => {
    const port = world.events().find((event) => event['event'] === 'ready')?.['assigned_port'];
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

describe('tunnel tcp', () => {
  it('publishes a local service, says where, and ends with 0 on a signal', async () => {
    const { world, code } = start(['tcp', String(echo.port), ...flags, '--json']);
    const port = await publicPort(world);
    expect(world.events()[0]).toMatchObject({
      event: 'ready',
      public_url: `tcp://localhost:${port}`,
      name: `tcp-${echo.port}`,
      protocol: 'tcp',
      local: `127.0.0.1:${echo.port}`,
    });
    (await visit(port, 'hello')).destroy();
    world.signal('SIGINT');
    expect(await code).toBe(0);
    expect(world.events().at(-1)).toMatchObject({ event: 'closed', exit_code: 0 });
  });

  it('lets open connections finish after a signal, and ends at once on a second one', async () => {
    let time = 0;
    const clock = { ...systemClock, monotonic: () => time };
    const { world, code } = start(['tcp', String(echo.port), ...flags, '--json'], { clock });
    const visitor = await visit(await publicPort(world), 'hello');
    world.signal('SIGTERM');
    visitor.write('still here');
    expect(String((await once(visitor, 'data'))[0])).toBe('still here');
    time = 500;
    world.signal('SIGTERM');
    visitor.write('the same signal');
    expect(String((await once(visitor, 'data'))[0])).toBe('the same signal');
    time = 1500;
    world.signal('SIGTERM');
    expect(await code).toBe(143);
  });

  it('ends quietly with 0 when nobody reads its output', async () => {
    const { world, code } = start(['tcp', String(echo.port), ...flags, '--json']);
    await publicPort(world);
    world.closeStdout();
    expect(await code).toBe(0);
    expect(world.err()).toBe('');
  });

  it('ends with 3 when the key is wrong', async () => {
    const { world, code } = start(['tcp', '80', ...flags, '--token', 'wrong']);
    expect(await code).toBe(3);
    expect(world.err()).toMatch(/^tunnel: the key was not accepted\n {2}Check the key/);
  });

  it('ends with 4 and the words of the edge when its port is taken', async () => {
    const first = start(['tcp', String(echo.port), ...flags, '--json']);
    const port = await publicPort(first.world);
    const { world, code } = start(['tcp', '80', ...flags, '--remote-port', String(port), '--name', 'x']);
    expect(await code).toBe(4);
    expect(world.err()).toContain(`tunnel: x: port ${port} is already in use\n`);
  });

  it('ends with 0 when it is told to stop before it is connected', async () => {
    const closed = await startEchoServer();
    await closed.close();
    const { world, code } = start(['tcp', '80', '--server', `127.0.0.1:${closed.port}`, '--token', 't', '--wait']);
    await eventually(() => expect(world.out()).toContain('connection refused'));
    world.signal('SIGINT');
    expect(await code).toBe(0);
  });

  it('shows a block that is drawn again in place on a terminal', async () => {
    const { world } = start(['tcp', String(echo.port), ...flags, '--name', 'db'], {
      isTTY: true,
      env: { NO_COLOR: '1' },
    });
    const port = await eventually(() => {
      const found = /tcp:\/\/localhost:(\d+) -> /.exec(world.out());
      expect(found).not.toBeNull();
      return Number(found?.[1]);
    });
    await visit(port, 'hello');
    await eventually(() => expect(world.out()).toContain('1 open, 1 in all, 5 B in, 5 B out'));
    expect(world.out()).toContain('\u001b[3A\u001b[J');
  });

  it('tells its owner that the local service is not there', async () => {
    await echo.close();
    const { world } = start(['tcp', String(echo.port), ...flags, '--json']);
    dial(await publicPort(world), '127.0.0.1').on('error', () => {});
    await eventually(() =>
      expect(world.err()).toContain(`cannot connect to 127.0.0.1:${echo.port}: connection refused`),
    );
    expect(world.events()).toContainEqual(expect.objectContaining({ event: 'error', code: 'CLIENT_LOCAL_DIAL' }));
  });
});

describe('tunnel start', () => {
  const configure = (tunnels: string): string[] => {
    writeFileSync(join(home.path, 'tunnel.yml'), `tunnels:\n${tunnels}`);
    return ['start', '--config', 'tunnel.yml', ...flags, '--json'];
  };

  it('goes on while one tunnel lives, and tells of the refused ones', async () => {
    const args = configure(
      `  db: {proto: tcp, local_port: ${echo.port}}\n  web: {proto: http, local_port: 3000, subdomain: www}\n`,
    );
    const { world, code } = start(args);
    await visit(await publicPort(world), 'hello');
    await eventually(() => expect(world.err()).toContain("tunnel: web: subdomain 'www' is not valid"));
    world.signal('SIGTERM');
    for (const socket of sockets) socket.destroy();
    expect(await code).toBe(0);
  });

  it('ends with 4 when every tunnel was refused', async () => {
    const { world, code } = start(
      configure(
        '  a: {proto: tcp, local_port: 1, remote_port: 1}\n  b: {proto: http, local_port: 2, subdomain: api}\n',
      ),
    );
    expect(await code).toBe(4);
    expect(world.events().map((event) => event['event'])).toEqual(['error', 'error', 'closed']);
  });
});

describe('an unreachable server', () => {
  it('ends with 5 after 30 s', async () => {
    const closed = await startEchoServer();
    await closed.close();
    const clock = new FakeClock();
    const { world, code } = start(['tcp', '80', '--server', `127.0.0.1:${closed.port}`, '--token', 't'], { clock });
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
    expect(world.err()).toContain(`tunnel: cannot reach 127.0.0.1:${closed.port}: connection refused\n`);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(30_000);
  });
});
