// A real client at a real edge in this process, with commands that talk to the client over its control socket.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import {
  eventually,
  startEchoServer,
  type TcpServer,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { expect } from 'vitest';
import type { ClientStatus } from '../../agent/answers.ts';
import { run } from '../../all-commands.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../../io/io.fixture.ts';
import { startEdge } from '../edge.fixture.ts';

type Address = { readonly port: number; readonly host: string } | { readonly path: string };

export class AgentTrial {
  readonly home: TemporaryDirectory;
  readonly edge: Edge;
  readonly echo: TcpServer;
  /** Flags that connect a client to the edge. */
  readonly flags: readonly string[];
  readonly sockets: Socket[] = [];
  readonly #runs: { io: TestIo; code: Promise<number> }[] = [];

  private constructor(home: TemporaryDirectory, edge: Edge, echo: TcpServer) {
    this.home = home;
    this.edge = edge;
    this.echo = echo;
    this.flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin', '--json'];
  }

  static async begin(ports: [number, number]): Promise<AgentTrial> {
    const edge = await startEdge({ limits: { tcp_port_range: ports } });
    return new AgentTrial(await temporaryDirectory(), edge, await startEchoServer());
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    for (const { io, code } of this.#runs) {
      io.signal('SIGTERM');
      await code;
    }
    await this.edge.stop({ drainMs: 0 });
    await this.echo.close();
    await this.home.close();
  }

  get socketPath(): string {
    return join(this.home.path, '.tunnel', 'run', `${process.pid}.sock`);
  }

  run(args: readonly string[], options: Partial<TestIoOptions> = {}) {
    const io = makeTestIo({ home: this.home.path, ...options });
    const started = { io, code: run([...args], io) };
    this.#runs.push(started);
    return started;
  }

  /** Runs a command to its end. */
  async ask(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const io = makeTestIo({ home: this.home.path });
    return { code: await run(args, io), out: io.out(), err: io.err() };
  }

  async statuses(): Promise<ClientStatus[]> {
    return JSON.parse((await this.ask('status', '--json')).out) as ClientStatus[];
  }

  /** Starts `tunnel tcp` for the echo service with the tunnel name `echo`, and waits until the tunnel is open. */
  async startTcp() {
    const started = this.run(['tcp', String(this.echo.port), '--name', 'echo', ...this.flags]);
    const port = await eventually(() => {
      const ready = started.io.events().find(({ event }) => event === 'ready');
      expect(ready).toBeDefined();
      return Number(ready?.['assigned_port']);
    });
    return { ...started, port };
  }

  dial(to: Address): Socket {
    const socket = connect(to);
    socket.on('error', () => {});
    this.sockets.push(socket);
    return socket;
  }

  /** Sends bytes through a tunnel and expects the echo. */
  async visit(port: number): Promise<void> {
    const socket = this.dial({ port, host: '127.0.0.1' });
    socket.write('hello');
    const [said] = (await Promise.race([
      once(socket, 'data'),
      once(socket, 'close').then(() => ['nothing']),
    ])) as unknown[];
    socket.destroy();
    expect(String(said)).toBe('hello');
  }
}
