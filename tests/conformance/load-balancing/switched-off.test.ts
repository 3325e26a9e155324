// The rows that behave differently while load balancing is off: group and health fields are accepted and ignored.
import { eventually, startTcpServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf } from '../../system/http-tunnels.fixture.ts';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { visit } from '../../system/visitor.fixture.ts';
import { fresh, GroupEdge } from './group-edge.fixture.ts';
import { greetingAt, join, namesAt, OFTEN, startNamed, startNamedTcp } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';
import { WebhookReceiver } from './webhook-receiver.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
let operator: WebhookReceiver;
beforeAll(async () => {
  operator = await WebhookReceiver.start(shared);
  edge = await GroupEdge.start(shared, { enabled: false, lines: `alert_webhook_url = "${operator.url()}"` });
});
afterAll(() => shared.close());

const OFF = 'switched off';
const tcp = (group: string, key = 'key') => memberRequest(group, { protocol: 'tcp', key });

describe.concurrent('registrations while load balancing is off', () => {
  it(row('Contract', 10), async ({ harness }) => {
    const group = fresh();
    const one = await startNamed(harness);
    const two = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { subdomain: group, group, localPort: one.port, healthCheck: OFTEN });
    const second = join(harness, edge, { subdomain: group, group, localPort: two.port });
    await expect(second).rejects.toThrow(`subdomain '${group}' is already in use`);
    expect(tunnel.warnings).toEqual(['load balancing is off on this edge: this tunnel is served alone']);
    expect(await namesAt(tunnel, 5)).toEqual(Array(5).fill(one.name));
    expect(await edge.groups()).toEqual([]);
    expect((await edge.get(`/api/groups/http/${group}/events`)).status).toBe(404);
    expect(await edge.metricsText()).not.toMatch(/tunnel_group_/);
    expect(await edge.tunnel(tunnel.tunnelId)).toMatchObject({ group: null });
  });

  it(row('Group lifecycle', 1, OFF), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const first = await raw.join(tcp(fresh()));
    expect(first.assigned_port).toBeGreaterThanOrEqual(edge.stack.tcpPorts.from);
    expect(await edge.groups()).toEqual([]);
    await raw.settle();
    expect(raw.of('Registered')).toEqual([]);
  });

  it(row('Group lifecycle', 2, OFF), async ({ harness }) => {
    const group = fresh();
    const one = await startNamedTcp(harness, 'one');
    const two = await startNamedTcp(harness, 'two');
    const first = await join(harness, edge, { protocol: 'tcp', group, localPort: one.port });
    const second = await join(harness, edge, { protocol: 'tcp', group, localPort: two.port });
    // Each tunnel has a separate port and a separate local service.
    for (let visits = 0; visits < 5; visits += 1) {
      expect(await greetingAt(first.tunnel.assignedPort ?? 0, 3)).toBe('one');
      expect(await greetingAt(second.tunnel.assignedPort ?? 0, 3)).toBe('two');
    }
  });

  it(row('Group lifecycle', 3, OFF), async ({ harness }) => {
    // A lost client's tunnel is a solo tunnel, so its port is held until the client returns.
    const raw = await RawControl.enter(harness, edge);
    const { tunnel_id, assigned_port: port = 0 } = await raw.join(tcp(fresh()));
    await raw.cut();
    await eventually(async () => expect(await edge.stack.tunnel(tunnel_id)).toBeUndefined());
    const other = await RawControl.enter(harness, edge);
    expect((await other.refusal({ protocol: 'tcp', remote_port: port })).code).toBe('TUNNEL_PORT_IN_USE');
    const back = await RawControl.enter(harness, edge, 'alice', raw.secret);
    expect(await back.join({ ...tcp('any'), tunnel_id })).toMatchObject({ tunnel_id, assigned_port: port });
  });

  it(row('Group lifecycle', 7, OFF), async ({ harness }) => {
    const group = fresh();
    const clients = await Promise.all(Array.from({ length: 5 }, () => RawControl.enter(harness, edge)));
    const named = await Promise.all(clients.map((client) => client.ask(memberRequest(group, { subdomain: group }))));
    expect(named.map(({ type }) => type).sort()).toEqual([...Array(4).fill('TunnelError'), 'TunnelRegistered']);
    const ports = await Promise.all(clients.map((client) => client.join(tcp(group))));
    expect(new Set(ports.map(({ assigned_port }) => assigned_port)).size).toBe(5);
  });

  it(row('Behaviour rules', 2, OFF), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const subdomain = fresh();
    await raw.join(memberRequest('x', { subdomain }));
    // There is no group and no group protocol to differ from, so the error only says that the name is in use.
    const { message } = await raw.refusal(memberRequest('x', { subdomain, protocol: 'https' }));
    expect(message).toBe(`subdomain '${subdomain}' is already in use`);
  });

  it(row('Behaviour rules', 5, OFF), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const subdomain = fresh();
    await raw.join({ protocol: 'http', subdomain });
    const { message } = await raw.refusal(memberRequest('any', { subdomain }));
    expect(message).toBe(`subdomain '${subdomain}' is already in use`);
  });

  it(row('Behaviour rules', 6, OFF), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const group = fresh();
    const one = await raw.join(tcp(group, 'one'));
    const two = await raw.join(tcp(group, 'two'));
    expect(one.assigned_port).not.toBe(two.assigned_port);
  });

  it(row('Contract', 6, OFF), async ({ harness }) => {
    // The edge chooses a name for each tunnel without a subdomain, so two tunnels with the same group get different names.
    const raw = await RawControl.enter(harness, edge);
    const one = await raw.join(memberRequest('shop'));
    const two = await raw.join(memberRequest('shop'));
    expect(one.label).not.toBe(two.label);
    expect(one.label).not.toBe('shop');
  });
});

describe.concurrent('health checks while load balancing is off', () => {
  it(row('Member health', 2, OFF), async ({ harness }) => {
    const silent = harness.use(await startTcpServer((socket) => void socket.write('hi')));
    const healthCheck = { type: 'http', path: '/', timeoutSecs: 30 } as const;
    const { tunnel } = await join(harness, edge, {
      protocol: 'tcp',
      group: fresh(),
      localPort: silent.port,
      healthCheck,
    });
    expect(await edge.tunnel(tunnel.tunnelId)).toMatchObject({ healthy: true });
    expect(await greetingAt(tunnel.assignedPort ?? 0, 2)).toBe('hi');
  });

  it(row('Member health', 4, OFF), async ({ harness }) => {
    const service = await startNamed(harness);
    const { tunnel, statuses } = await join(harness, edge, {
      group: fresh(),
      localPort: service.port,
      healthCheck: OFTEN,
    });
    service.up = false;
    await eventually(() =>
      expect(statuses).toContainEqual(expect.objectContaining({ type: 'health', healthy: false })),
    );
    expect(await namesAt(tunnel, 3)).toEqual(Array(3).fill(service.name));
    expect(await edge.tunnel(tunnel.tunnelId)).toMatchObject({ healthy: true });
    expect(await edge.healthEvents(tunnel.tunnelId)).toEqual([]);
  });

  it(row('Errors', 6, OFF), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(memberRequest(fresh()));
    await raw.healthy(member);
    await raw.unhealthy(member);
    // The client has no carrier, so its tunnel is away like any other; the error does not mention a group.
    const answer = await askHttp(endpointOf(member.public_url));
    expect([answer.status, answer.headers['x-tunnel-error']]).toEqual([502, 'TUNNEL_AWAY']);
  });

  it(row('Alert webhook rules', 1, OFF), async ({ harness }) => {
    const receiver = await WebhookReceiver.start(harness);
    const raw = await RawControl.enter(harness, edge);
    const health_check = { type: 'tcp', alert_webhook: receiver.url() } as const;
    const member = await raw.join(memberRequest(fresh(), { health_check }));
    for (let edges = 0; edges < 3; edges += 1) {
      await raw.healthy(member);
      await raw.unhealthy(member);
    }
    await raw.leave(member);
    await raw.settle();
    expect([receiver.connections, operator.connections]).toEqual([0, 0]);
  });

  it(row('Control-plane frames', 3, OFF), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const member = await raw.join(tcp(fresh()));
    await raw.unhealthy(member);
    await raw.healthy(member);
    expect(await edge.healthEvents(member.tunnel_id)).toEqual([]);
    expect(raw.of('Error')).toEqual([]);
    (await visit(member.assigned_port ?? 0)).destroy();
  });
});
