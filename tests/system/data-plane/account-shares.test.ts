// Tests of two accounts at the same edge. The first takes as much of a shared resource as it can get, and the second still gets its share
// at once.
import { createHash } from 'node:crypto';
import { loadServerConfig } from '@tunnel/config/server';
import { createEdge } from '@tunnel/edge';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { claimPortBlock, eventually, startUdpEcho } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { type Harness, it } from '../in-process.fixture.ts';
import { type FlowList, UdpVisitor } from '../udp-visitor.fixture.ts';

const ADMIN = 'admin-token';
const KEYS = { greedy: 'tnl_greedy-key', modest: 'tnl_modest-key' };
const FLOWS_MAX = 80;

const startEdge = async (harness: Harness) => {
  const ports = harness.use(await claimPortBlock());
  const { from, to } = ports;
  const config = loadServerConfig({
    env: {},
    overrides: {
      server: { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0 },
      limits: { udp_port_range: [from, to] },
      udp: { new_flows_per_second: 0 },
      auth: {
        keys: Object.entries(KEYS).map(([account, key]) => ({
          account,
          sha256: createHash('sha256').update(key).digest('hex'),
        })),
      },
    },
  });
  const edge = createEdge(config, {
    clock: systemClock,
    logger: createLogger({ level: 'silent', format: 'json' }),
    adminToken: new Secret(ADMIN),
    udpFlowsMax: FLOWS_MAX,
  });
  await edge.start();
  harness.use({ close: () => edge.stop({ drainMs: 0 }) });
  return edge;
};

describe('UDP flows', () => {
  it('an account holding all flows loses a share to a second account, and its flood costs the second account nothing', async ({
    harness,
  }) => {
    const edge = await startEdge(harness);
    const { control, api } = edge.addresses;
    const echo = harness.use(await startUdpEcho());
    const open = async (key: string) => {
      const server = ['--server', `127.0.0.1:${control.port}`, '--idle', '3600'];
      const program = await harness.run(['udp', String(echo.port), '--json', ...server], {
        env: { TUNNEL_API_KEY: key },
      });
      const { assigned_port: port, tunnel_id: id } = await program.ready();
      const flows = async (): Promise<FlowList> => {
        const headers = { authorization: `Bearer ${ADMIN}` };
        const answer = await fetch(`http://127.0.0.1:${api.port}/api/tunnels/${id}/flows`, { headers });
        return (await answer.json()) as FlowList;
      };
      return { port, flows };
    };
    const greedy = await open(KEYS.greedy);
    const modest = await open(KEYS.modest);
    // The first account takes all flows of the edge, which last for an hour. Half of the flows are confirmed, so that no foreign flood
    // can evict them.
    const crowd = await Promise.all(Array.from({ length: FLOWS_MAX }, () => UdpVisitor.of(greedy.port)));
    for (const visitor of crowd) harness.use(visitor);
    await Promise.all(crowd.map((visitor) => visitor.askUntilAnswered('one')));
    await Promise.all(crowd.slice(FLOWS_MAX / 2).map((visitor) => visitor.askUntilAnswered('two')));
    expect((await greedy.flows()).total).toBe(FLOWS_MAX);
    const own = await Promise.all(Array.from({ length: FLOWS_MAX / 4 }, () => UdpVisitor.of(modest.port)));
    for (const visitor of own) harness.use(visitor);
    // The edge accepts a new flow at the first datagram.
    for (const visitor of own) expect(String(await visitor.ask('one'))).toBe('one');
    expect([(await greedy.flows()).total, (await modest.flows()).total]).toEqual([60, 20]);
    for (let round = 0; round < 10; round += 1) for (const visitor of crowd) visitor.say('flood');
    for (const visitor of own) expect(String(await visitor.ask('two'))).toBe('two');
    const { flows, dropped } = await modest.flows();
    expect(flows.map(({ datagrams_in: passed, confirmed }) => [passed, confirmed])).toEqual(own.map(() => [2, true]));
    expect(Object.values(dropped).every((count) => count === 0)).toBe(true);
    await eventually(async () => expect((await greedy.flows()).total).toBe(60));
  });
});
