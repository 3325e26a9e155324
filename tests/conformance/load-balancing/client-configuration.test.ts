// The config.yml keys for groups, tested with the real `tunnel start`.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually, FastClock, startTcpServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { configLines, startFile, startTunnels } from './config-file.fixture.ts';
import { FrameTap } from './frame-tap.fixture.ts';
import { fresh, GroupEdge, sha256 } from './group-edge.fixture.ts';
import { namesAt, startNamed, startNamedTcp, untilHealthy } from './members.fixture.ts';
import { row } from './rows.fixture.ts';
import { WebhookReceiver } from './webhook-receiver.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

const KEY = 'raw-key-of-the-pool';
const memberEntry = (group: string, port: number, health_check?: Readonly<Record<string, unknown>>) => ({
  proto: 'http',
  local_port: port,
  group,
  group_key: KEY,
  ...(health_check === undefined ? {} : { health_check }),
});
const quick = { type: 'http', path: '/healthz', interval_secs: 0.2, max_failed: 2 };

describe.concurrent('Client tunnel configuration', () => {
  it(row('Client tunnel configuration', 1), async ({ harness }) => {
    const service = await startNamed(harness);
    const subdomain = fresh();
    const group = fresh('first');
    const first = await startTunnels(harness, edge, { a: { ...memberEntry(group, service.port), subdomain } });
    await first.ready();
    const second = await startTunnels(harness, edge, { b: { ...memberEntry('Anything!', service.port), subdomain } });
    await second.ready();
    expect(await edge.group(group)).toMatchObject({ label: subdomain, member_count: 2 });
  });

  it(row('Client tunnel configuration', 2), async ({ harness }) => {
    const service = await startNamed(harness);
    const group = fresh();
    const tap = await FrameTap.start(harness, edge);
    const first = await startTunnels(harness, edge, { a: memberEntry(group, service.port) }, tap.server);
    await first.ready();
    expect(tap.of('RegisterTunnel')).toMatchObject([{ group, group_key_hash: sha256(KEY) }]);
    expect(tap.texts.join('')).not.toContain(KEY);
    const stranger = { ...memberEntry(group, service.port), group_key: 'another-raw-key' };
    const second = await startTunnels(harness, edge, { b: stranger });
    expect(await second.exitCode()).toBe(4);
    const said = [...second.stdout, ...second.stderr].join('\n');
    expect(said).toContain('group key does not match');
    expect(said + first.stdout.join() + first.stderr.join()).not.toMatch(/another-raw-key|raw-key-of-the-pool/);
    expect((await edge.group(group)).member_count).toBe(1);
  });

  it(row('Client tunnel configuration', 3), async ({ harness }) => {
    const tcp = fresh('tcp');
    const http = fresh('http');
    const none = fresh('none');
    const asked = new Map<string, string[]>();
    const listen = async (name: string) =>
      harness.use(
        await startTcpServer((socket) => {
          asked.set(name, [...(asked.get(name) ?? []), '']);
          socket.on('data', (bytes) => {
            asked.get(name)?.push(bytes.toString());
            socket.end('HTTP/1.0 204 No Content\r\n\r\n');
          });
          socket.on('end', () => socket.end());
        }),
      );
    const a = await listen(tcp);
    const b = await listen(http);
    const c = await listen(none);
    const program = await startTunnels(harness, edge, {
      a: memberEntry(tcp, a.port, { type: 'tcp', interval_secs: 0.2 }),
      b: memberEntry(http, b.port, quick),
      c: memberEntry(none, c.port),
    });
    await program.ready(3);
    for (const group of [tcp, http, none]) await untilHealthy(edge, group, 1);
    await eventually(() => expect(asked.get(tcp)?.length).toBeGreaterThan(2));
    // A tcp probe opens a connection without sending bytes, an http probe sends a GET, and without a health check nothing connects.
    expect(asked.get(tcp)?.join('')).toBe('');
    expect(asked.get(http)?.join('')).toMatch(/^GET /);
    expect(asked.get(none)).toBeUndefined();
    const kinds = await Promise.all([tcp, http, none].map((group) => edge.group(group)));
    expect(kinds.map(({ members }) => members[0]?.health_check_kind)).toEqual(['tcp', 'http', undefined]);
  });

  it(row('Client tunnel configuration', 4), async ({ harness }) => {
    const paths: (string | undefined)[] = [];
    const service = await startNamed(harness, 'any', () => {});
    service.server.removeAllListeners('request').on('request', (request, response) => {
      paths.push(request.url);
      response.end();
    });
    const group = fresh();
    const check = { ...quick, path: '/deep/health?full=1' };
    const program = await startTunnels(harness, edge, { a: memberEntry(group, service.port, check) });
    await program.ready();
    await untilHealthy(edge, group, 1);
    expect(paths[0]).toBe('/deep/health?full=1');
    const without = await startTunnels(harness, edge, { a: memberEntry(group, service.port, { type: 'http' }) });
    expect(await without.exitCode()).toBe(2);
    // The error names the line of the file.
    expect(without.stderr.join('\n')).toMatch(/config\.yml:9:.*health_check\.path/);
  });

  it(row('Client tunnel configuration', 5), async ({ harness }) => {
    const service = await startNamed(harness);
    const check = { ...quick, interval_secs: 0.5 };
    const program = await startTunnels(harness, edge, { a: memberEntry(fresh(), service.port, check) });
    await program.ready();
    await eventually(() => expect(service.probes.length).toBeGreaterThan(5), { timeoutMs: 30_000 });
    const gaps = service.probes.slice(1, 6).map((at, index) => at - (service.probes[index] ?? 0));
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    // The interval is half a second plus jitter plus the delay of a busy machine. Without the key it would be ten seconds.
    expect(mean).toBeGreaterThan(350);
    expect(mean).toBeLessThan(5000);
  });

  it(row('Client tunnel configuration', 6), async ({ harness }) => {
    const lasted: number[] = [];
    const clock = new FastClock(5);
    const silent = harness.use(
      await startTcpServer((socket) => {
        const since = clock.monotonic();
        socket.on('close', () => lasted.push(clock.monotonic() - since)).on('end', () => socket.end());
        socket.resume();
      }),
    );
    const group = fresh();
    // The timeout is longer than the default of three seconds.
    const check = { ...quick, interval_secs: 0.1, timeout_secs: 5, max_failed: 1 };
    const text = configLines(edge.server, edge.token('alice'), { a: memberEntry(group, silent.port, check) });
    const program = await startFile(harness, text, { clock });
    await program.ready();
    await eventually(async () => expect((await edge.group(group)).total_health_failures).toBe(1));
    expect(lasted[0]).toBeGreaterThan(4500);
  });

  it(row('Client tunnel configuration', 7), async ({ harness }) => {
    const service = await startNamed(harness);
    const group = fresh();
    const tap = await FrameTap.start(harness, edge);
    const answers = [200, 503, 503, 200, 503, 503, 503];
    let asked = 0;
    service.server.removeAllListeners('request').on('request', (_, response) => {
      response.writeHead(answers[asked] ?? 503).end();
      asked += 1;
    });
    const check = { ...quick, max_failed: 3 };
    const program = await startTunnels(harness, edge, { a: memberEntry(group, service.port, check) }, tap.server);
    await program.ready();
    await eventually(() => expect(tap.of('TunnelUnhealthy')).toHaveLength(1));
    // Two failures before a success do not count. The third failure in a row does.
    expect(asked).toBeGreaterThanOrEqual(7);
    expect(tap.of('TunnelUnhealthy')).toMatchObject([{ consecutive_failures: 3 }]);
    expect(tap.of('TunnelHealthy')).toHaveLength(1);
  });

  it(row('Client tunnel configuration', 8), async ({ harness }) => {
    const service = await startNamed(harness);
    service.up = false;
    const any = fresh('any');
    const only2xx = fresh('only');
    const program = await startTunnels(harness, edge, {
      a: memberEntry(any, service.port, { ...quick, expect_2xx: false }),
      b: memberEntry(only2xx, service.port, quick),
    });
    await program.ready(2);
    await untilHealthy(edge, any, 1);
    await eventually(async () => expect((await edge.group(only2xx)).total_health_failures).toBe(1));
    expect((await edge.group(only2xx)).healthy_count).toBe(0);
    expect((await edge.group(any)).total_health_failures).toBe(0);
  });

  it(row('Client tunnel configuration', 9), async ({ harness }) => {
    const service = await startNamed(harness);
    const receiver = await WebhookReceiver.start(harness);
    const group = fresh();
    const check = { ...quick, alert_webhook: receiver.url('/from-the-file') };
    const program = await startTunnels(harness, edge, { a: memberEntry(group, service.port, check) });
    await program.ready();
    await untilHealthy(edge, group, 1);
    expect(receiver.alerts).toEqual([]);
    service.up = false;
    expect(await receiver.until(group, 1)).toMatchObject([{ method: 'POST', path: '/from-the-file' }]);
    expect([...program.stdout, ...program.stderr].join('\n')).not.toContain('from-the-file');
  });

  it(row('Client tunnel configuration', 10), async ({ harness }) => {
    const hosts: (string | undefined)[] = [];
    // A local service that does not listen on 127.0.0.1, so that only local_host leads to it.
    const server = createServer((request, response) => {
      hosts.push(`${request.url} at ${request.socket.localAddress}`);
      response.end('here');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve));
    harness.use({ close: async () => void server.close() });
    const local_port = (server.address() as AddressInfo).port;
    const group = fresh();
    const subdomain = fresh('sub');
    const web = { ...memberEntry(group, local_port, quick), local_host: '127.0.0.2', subdomain };
    const tcp = await startNamedTcp(harness, 'tcp');
    const db = { proto: 'tcp', local_port: tcp.port };
    const text = configLines(edge.server, edge.token('alice'), { web, db });
    const program = await startFile(harness, text);
    const ready = [await program.ready(1), await program.ready(2)];
    await untilHealthy(edge, group, 1);
    expect(hosts[0]).toBe('/healthz at 127.0.0.2');
    const url = ready.find(({ name }) => name === 'web')?.public_url ?? '';
    expect(new URL(url).hostname).toBe(`${subdomain}.localhost`);
    expect(await namesAt({ publicUrl: url }, 1)).toEqual(['here']);
    // auth_token is alice's key, so the group belongs to alice's account.
    expect(await edge.findGroup(group, 'alice')).toBeDefined();
    expect(await edge.findGroup(group, 'bob')).toBeUndefined();
  });
});
