// `tunnel udp` as its user has it: a real client, a real edge, a service that comes and goes, and visitors with sockets of their own.
import { createSocket, type Socket } from 'node:dgram';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, startUdpEcho, type UdpService } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Stack } from './stack.fixture.ts';
import { Harness, it } from './system-test.fixture.ts';
import type { TunnelProgram } from './tunnel-program.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

/** One address and port: to the edge, one flow. */
class Visitor {
  readonly heard: string[] = [];
  readonly #socket: Socket = createSocket('udp4');
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
    this.#socket.on('message', (bytes) => this.heard.push(String(bytes)));
    this.#socket.on('error', () => {});
  }

  say(text: string): void {
    this.#socket.send(text, this.#port, '127.0.0.1');
  }

  /** Says it until it is answered: a datagram may be lost, and nobody tells. */
  async ask(text: string): Promise<void> {
    await eventually(() => {
      this.say(text);
      expect(this.heard).toContain(text);
    });
  }

  async close(): Promise<void> {
    this.#socket.close();
  }
}

const publish = (harness: Harness, port: number, more: { home?: string; flags?: readonly string[] } = {}) => {
  const { home, flags = [] } = more;
  const args = ['udp', String(port), '--json', '--server', stack.control, '--token-file', stack.tokenFile, ...flags];
  return harness.run(args, home === undefined ? {} : { home });
};

const errorsOf = (program: TunnelProgram): string[] => program.events('error').map(({ code }) => String(code));

describe.concurrent('tunnel udp', () => {
  it('serves visitors apart from each other, and ends with 0 when asked to', async ({ harness }) => {
    const echo: UdpService = harness.use(await startUdpEcho());
    const program = await publish(harness, echo.port, { flags: ['--drain-secs', '1'] });
    const { assigned_port: port, public_url: url, name } = await program.ready();
    expect([url, name]).toEqual([`udp://localhost:${port}`, `udp-${echo.port}`]);
    const visitors = Array.from({ length: 10 }, () => harness.use(new Visitor(port)));
    await Promise.all(visitors.map((visitor, index) => visitor.ask(`visitor ${index}`)));
    for (const [index, { heard }] of visitors.entries()) expect(new Set(heard)).toEqual(new Set([`visitor ${index}`]));
    await eventually(() => expect(program.events('datagrams').length).toBeGreaterThan(0));
    program.signal('SIGTERM');
    expect(await program.exitCode()).toBe(0);
  });

  it('that was killed has its port and id back, and its visitors find it again', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const home = await harness.folder();
    const first = await publish(harness, echo.port, { home });
    const before = await first.ready();
    const visitor = harness.use(new Visitor(before.assigned_port));
    await visitor.ask('before');
    await first.kill();
    const second = await publish(harness, echo.port, { home });
    const after = await second.ready();
    expect([after.assigned_port, after.tunnel_id]).toEqual([before.assigned_port, before.tunnel_id]);
    await visitor.ask('after');
  });

  it('tells of a service that is not there, and goes on when it is back', async ({ harness }) => {
    const echo = await startUdpEcho();
    const program = await publish(harness, echo.port);
    const { assigned_port: port } = await program.ready();
    const visitor = harness.use(new Visitor(port));
    await visitor.ask('there');
    await echo.close();
    await eventually(() => {
      visitor.say('not there');
      expect(errorsOf(program)).toEqual(['CLIENT_LOCAL_DIAL']);
    });
    harness.use(await startUdpEcho({ port: echo.port }));
    await visitor.ask('back');
  });

  it('and tcp may have the same public port, each from its own range', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const program = await publish(harness, echo.port);
    const { assigned_port: port } = await program.ready();
    const tcp = await harness.tcp(stack, 1, { flags: ['--remote-port', String(port)] });
    expect((await tcp.ready()).assigned_port).toBe(port);
    await harness.use(new Visitor(port)).ask('still udp');
  });

  it('a port that another tunnel has: exit 4 in one line', async ({ harness }) => {
    const first = await publish(harness, 1);
    const { assigned_port: port } = await first.ready();
    const second = await publish(harness, 1, { flags: ['--remote-port', String(port)] });
    expect(await second.exitCode()).toBe(4);
    expect(second.stderr.join('\n')).toContain(`port ${port} is already in use`);
  });

  it('a config.yml with a key of another kind: exit 2 at its line, and nothing is dialled', async ({ harness }) => {
    const home = await harness.folder();
    const file = join(home, 'tunnel.yml');
    writeFileSync(file, 'tunnels:\n  dns:\n    proto: udp\n    local_port: 53\n    host_header: keep\n');
    const program = await harness.run(['start', '--config', file], { home });
    expect(await program.exitCode()).toBe(2);
    expect(program.stderr[0]).toBe(
      `tunnel: ${file}:5: \`tunnels.dns.host_header\` must be left out unless \`proto\` is "http" or "https", got "keep"`,
    );
  });
});
