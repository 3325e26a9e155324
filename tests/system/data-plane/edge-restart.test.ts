// Tests of an edge that dies and restarts on the same ports: clients reconnect automatically.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deterministicBytes, eventually, hashOf, startEchoServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import {
  askFor,
  askForAll,
  CHOSEN_NAME,
  endpointsOf,
  startClients,
  startEdgeWithStranger,
} from '../comeback.fixture.ts';
import { askHttp, endpointOf, openHttp, startWeb } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { ask, endOf, fateOf, sendAndReadAll, visit } from '../visitor.fixture.ts';

describe.concurrent('a killed edge', () => {
  it('gets its tunnels back on their ports after a restart, without any action on the client', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const stack = await harness.stack({ fixedPorts: true, programs: true });
    const tunnel = await harness.tcp(stack, echo.port);
    const { assigned_port: port } = await tunnel.ready();
    const visitor = await visit(port);
    expect(await ask(visitor, 'hello')).toBe('hello');
    const cut = endOf(visitor);
    stack.program.signal('SIGKILL');
    await cut;
    const { planned, reason } = await tunnel.waitFor('reconnecting');
    expect([planned, typeof reason]).toEqual([false, 'string']);
    await eventually(() => expect(echo.openConnections).toBe(0));
    await stack.start();
    expect(await tunnel.waitFor('reconnected')).toMatchObject({ resumed: false });
    const bytes = deterministicBytes(1_000_000, 3);
    expect(hashOf(await sendAndReadAll(port, bytes))).toBe(hashOf(bytes));
    expect((await stack.tunnels()).map((row) => row.assigned_port)).toEqual([port]);
    // The address is unchanged, so the client announces no second ready event.
    expect(tunnel.events('ready')).toHaveLength(1);
    expect(tunnel.events('error')).toEqual([]);
  });

  it('gets two clients back, each on its previous port', async ({ harness }) => {
    const one = harness.use(await startEchoServer());
    const two = harness.use(await startEchoServer());
    const stack = await harness.stack({ fixedPorts: true });
    const tunnels = [await harness.tcp(stack, one.port), await harness.tcp(stack, two.port)];
    const ports = await Promise.all(tunnels.map(async (tunnel) => (await tunnel.ready()).assigned_port));
    stack.program.signal('SIGKILL');
    await stack.program.waitForExit();
    for (const port of ports) expect(await fateOf(port)).toBe('ECONNREFUSED');
    await stack.start();
    await Promise.all(tunnels.map((tunnel) => tunnel.waitFor('reconnected')));
    for (const port of ports) expect((await sendAndReadAll(port, Buffer.from('hi'))).toString()).toBe('hi');
    expect([one.totalConnections, two.totalConnections]).toEqual([1, 1]);
  });

  it('holds every name and port for its clients after a restart, and refuses other accounts and the operator', async ({
    harness,
  }) => {
    // The edge runs as an executable, so that only the state on disk survives the kill.
    const stack = await startEdgeWithStranger(harness, { programs: true });
    const programs = await startClients(harness, stack);
    const before = await endpointsOf(stack);
    expect(before).toHaveLength(8);
    const idsBefore = (await stack.tunnels()).map((row) => row.tunnel_id);
    // Stopped clients cannot reconnect before the strangers try.
    for (const program of programs) program.signal('SIGSTOP');
    await stack.kill();
    await stack.start();
    const refusals = ['TUNNEL_PORT_IN_USE', 'TUNNEL_SUBDOMAIN_IN_USE'];
    const operator = readFileSync(stack.tokenFile, 'utf8').trim();
    for (const token of [undefined, operator]) {
      const told = await askForAll(stack, before, token);
      expect(told).toHaveLength(6);
      for (const code of told) expect(refusals).toContain(code);
    }
    for (const program of programs) program.signal('SIGCONT');
    await eventually(async () => expect(await endpointsOf(stack)).toEqual(before), { timeoutMs: 15_000 });
    const idsAfter = (await stack.tunnels()).map((row) => row.tunnel_id);
    for (const id of idsAfter) expect(idsBefore).not.toContain(id);
    for (const program of programs) expect(program.events('error')).toEqual([]);
    const { host, port } = new URL(stack.run.http_url);
    const visited = await askHttp({ host: `${CHOSEN_NAME}.localhost:${port}`, port: Number(port) });
    expect([visited.status, visited.text, host]).toEqual([200, 'well', `127.0.0.1:${port}`]);
  });

  it('still holds the names of its clients after a second kill before their return', async ({ harness }) => {
    const stack = await startEdgeWithStranger(harness);
    const web = harness.use(await startWeb((_, response) => void response.end('well')));
    const { tunnel, ready } = await openHttp(harness, stack, web.port);
    const { hostname } = new URL(ready.public_url);
    const subdomain = hostname.slice(0, hostname.indexOf('.'));
    // The edge writes the endpoint to disk a moment after it reports the tunnel to the client.
    const kept = join(stack.dataDir, 'edge-endpoints.jsonl');
    await eventually(() => expect(readFileSync(kept, 'utf8')).toContain(subdomain));
    tunnel.signal('SIGSTOP');
    for (let kills = 0; kills < 2; kills += 1) {
      await stack.kill();
      await stack.start();
    }
    tunnel.signal('SIGCONT');
    expect(await askFor(stack, { subdomain })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    await eventually(async () => expect((await stack.tunnels()).map((row) => row.label)).toEqual([subdomain]), {
      timeoutMs: 15_000,
    });
  });

  it('restarts with a corrupt endpoint file, logs the problem, and its client reconnects', async ({ harness }) => {
    const stack = await startEdgeWithStranger(harness);
    const web = harness.use(await startWeb((_, response) => void response.end('well')));
    const { tunnel } = await openHttp(harness, stack, web.port, ['--subdomain', CHOSEN_NAME]);
    await stack.kill();
    writeFileSync(join(stack.dataDir, 'edge-endpoints.jsonl'), 'not\na file\nof ours\n');
    await stack.start();
    await tunnel.waitFor('reconnected');
    await eventually(async () => expect((await stack.tunnels()).map((row) => row.label)).toEqual([CHOSEN_NAME]));
    expect(stack.program.stderr.filter((line) => line.includes('cannot read'))).toHaveLength(1);
  });
});

describe.concurrent('an edge stopped by the operator', () => {
  it('holds names for their account over its restart, even for a client that was restarted', async ({ harness }) => {
    const stack = await startEdgeWithStranger(harness);
    const web = harness.use(await startWeb((_, response) => void response.end('well')));
    const flags = ['--subdomain', CHOSEN_NAME];
    const chosen = await openHttp(harness, stack, web.port, flags);
    const random = await openHttp(harness, stack, web.port);
    random.tunnel.signal('SIGSTOP');
    await stack.stop();
    chosen.tunnel.signal('SIGINT');
    expect(await chosen.tunnel.exitCode()).toBe(0);
    await stack.start();
    expect(await askFor(stack, { subdomain: CHOSEN_NAME })).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    const again = await openHttp(harness, stack, web.port, flags);
    expect(endpointOf(again.ready.public_url).host).toContain(`${CHOSEN_NAME}.`);
    random.tunnel.signal('SIGCONT');
    const [label] = new URL(random.ready.public_url).hostname.split('.');
    await eventually(async () => expect((await stack.tunnels()).map((row) => row.label)).toContain(label), {
      timeoutMs: 15_000,
    });
  });
});
