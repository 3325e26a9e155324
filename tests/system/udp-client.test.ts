// Tests of `tunnel udp` as a user runs the command: its exit, its messages about a service that stops and returns, and refused starts.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, startUdpEcho } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from './in-process.fixture.ts';
import type { Stack } from './stack.fixture.ts';

import { flowsOf, UdpVisitor } from './udp-visitor.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

const visit = async (harness: Harness, port: number): Promise<UdpVisitor> => harness.use(await UdpVisitor.of(port));

describe.concurrent('tunnel udp', () => {
  it('reports the path of its datagrams, and exits with 0 on SIGTERM even with visitors', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const program = await harness.udp(stack, echo.port);
    const { assigned_port: port } = await program.ready();
    const visitor = await visit(harness, port);
    expect(String(await visitor.askUntilAnswered('hello'))).toBe('hello');
    await eventually(() => expect(program.events('datagrams').length).toBeGreaterThan(0));
    program.signal('SIGTERM');
    expect(await program.exitCode()).toBe(0);
  });

  it('gets its port and id back after a kill, and its visitors reach it again', async ({ harness }) => {
    const echo = harness.use(await startUdpEcho());
    const home = await harness.folder();
    const first = await harness.udp(stack, echo.port, { home });
    const before = await first.ready();
    const visitor = await visit(harness, before.assigned_port);
    expect(String(await visitor.askUntilAnswered('before'))).toBe('before');
    await first.kill();
    const second = await harness.udp(stack, echo.port, { home });
    const after = await second.ready();
    expect([after.assigned_port, after.tunnel_id]).toEqual([before.assigned_port, before.tunnel_id]);
    await eventually(async () => expect(String(await visitor.askUntilAnswered('after'))).toBe('after'));
  });

  it('reports a service that is down, and continues once the service is back', async ({ harness }) => {
    const echo = await startUdpEcho();
    const program = await harness.udp(stack, echo.port);
    const { assigned_port: port, tunnel_id: tunnelId } = await program.ready();
    const visitor = await visit(harness, port);
    await visitor.askUntilAnswered('there');
    await echo.close();
    // Uses a new visitor without any response, because the first visitor may have repeated its question.
    const late = await visit(harness, port);
    let said = 0;
    await eventually(() => {
      late.say('not there');
      said += 1;
      expect(program.events('error')).toMatchObject([{ code: 'CLIENT_LOCAL_DIAL', fatal: false }]);
    });
    // The client reports dropped datagrams to the edge, where every datagram is counted once.
    await eventually(async () => {
      const { flows, dropped } = await flowsOf(stack, tunnelId);
      expect(flows.find(({ visitor: name }) => name === late.name)?.dropped).toBe(said);
      expect(dropped['local']).toBeGreaterThanOrEqual(said);
    });
    harness.use(await startUdpEcho({ port: echo.port }));
    await visitor.askUntilAnswered('back');
  });

  it('with a port in use ends with 4', async ({ harness }) => {
    const first = await harness.udp(stack, 1);
    const { assigned_port: port } = await first.ready();
    const second = await harness.udp(stack, 1, { flags: ['--remote-port', String(port)] });
    expect(await second.exitCode()).toBe(4);
    expect(second.stderr.join('\n')).toContain(`port ${port} is already in use`);
  });

  it('with a config key of another protocol ends with 2 and names the line', async ({ harness }) => {
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
