// The load balancing keys of server.toml, tested with a separate edge for each key.
import { describe, expect } from 'vitest';
import { it } from '../../system/in-process.fixture.ts';
import { fateOf } from '../../system/visitor.fixture.ts';
import { fresh, GroupEdge } from './group-edge.fixture.ts';
import { distinct, greetingAt, join, namesAt, startNamed, startNamedTcp } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';
import { WebhookReceiver } from './webhook-receiver.fixture.ts';

const tcp = (group: string, key = 'key') => memberRequest(group, { protocol: 'tcp', key });

describe.concurrent('Server configuration', () => {
  it(row('Server configuration', 1, 'false by default'), async ({ harness }) => {
    const edge = await GroupEdge.start(harness, { enabled: null });
    const raw = await RawControl.enter(harness, edge);
    const one = await raw.join(tcp('pool'));
    const two = await raw.join(tcp('pool'));
    expect(one.assigned_port).not.toBe(two.assigned_port);
    expect(await edge.groups()).toEqual([]);
    // Group and health fields are accepted, but the tunnel is a solo tunnel and serves at once.
    const service = await startNamed(harness);
    const check = { type: 'http', path: '/never' } as const;
    const { tunnel } = await join(harness, edge, { group: 'web', localPort: service.port, healthCheck: check });
    expect(await namesAt(tunnel, 1)).toEqual([service.name]);
  });

  it(row('Server configuration', 1, 'true: who shares (subdomain, hash) or (name, hash)'), async ({ harness }) => {
    const edge = await GroupEdge.start(harness, { enabled: true });
    const raw = await RawControl.enter(harness, edge);
    const a = fresh();
    const b = fresh();
    const joined = [
      await raw.join(memberRequest('x', { subdomain: a })),
      await raw.join(memberRequest('y', { subdomain: a })),
      await raw.join(memberRequest('x', { subdomain: b })),
    ];
    expect(joined.map(({ label }) => label)).toEqual([a, a, b]);
    const ports = [await raw.join(tcp('x')), await raw.join(tcp('x')), await raw.join(tcp('y'))];
    expect(ports[0]?.assigned_port).toBe(ports[1]?.assigned_port);
    expect(ports[0]?.assigned_port).not.toBe(ports[2]?.assigned_port);
    const groups = await edge.groups();
    expect(groups.map(({ protocol, name, member_count }) => `${protocol} ${name} ${member_count}`).sort()).toEqual([
      'http x 1',
      'http x 2',
      'tcp x 2',
      'tcp y 1',
    ]);
  });

  it(row('Server configuration', 2), async ({ harness }) => {
    const operator = await WebhookReceiver.start(harness);
    const edge = await GroupEdge.start(harness, { lines: `alert_webhook_url = "${operator.url('/operator')}"` });
    for (const [who, group] of [
      ['alice', fresh()],
      ['bob', fresh()],
      ['admin', fresh()],
    ] as const) {
      const raw = await RawControl.enter(harness, edge, who);
      const member = await raw.join(memberRequest(group));
      await raw.healthy(member);
      await raw.unhealthy(member);
      expect(await operator.until(group, 1)).toMatchObject([{ method: 'POST', path: '/operator' }]);
    }
    expect(operator.alerts).toHaveLength(3);
  });

  it(row('Server configuration', 3), async ({ harness }) => {
    const edge = await GroupEdge.start(harness, { tcpPorts: 2 });
    const { from, to } = edge.stack.tcpPorts;
    const raw = await RawControl.enter(harness, edge);
    const service = await startNamedTcp(harness, 'tcp');
    const { tunnel } = await join(harness, edge, { protocol: 'tcp', group: 'one', localPort: service.port });
    const two = await raw.join(tcp('two'));
    expect(distinct([tunnel.assignedPort, two.assigned_port])).toEqual([from, to]);
    expect(await greetingAt(tunnel.assignedPort ?? 0, 3)).toBe('tcp');
    // A third group finds no free port. A further member of the second group needs none.
    expect((await raw.refusal(tcp('three'))).code).toBe('TUNNEL_PORTS_EXHAUSTED');
    expect((await raw.join(tcp('two'))).assigned_port).toBe(two.assigned_port);
    expect(await fateOf(two.assigned_port ?? 0)).toBe('ECONNRESET');
  });
});
