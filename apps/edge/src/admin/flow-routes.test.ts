// GET /api/tunnels/:id/flows: the visitors of a udp tunnel, dropped datagrams and the datagram path, for the tunnel’s owner and the
// operator.

import { apiError, edgeFlows } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UdpStage, type UdpStand } from '../ingress/udp/udp.fixture.ts';
import { API_FLOWS_SHOWN } from './flow-routes.ts';
import { ALICE } from './group.fixture.ts';
import { ADMIN_TOKEN, ALICE_KEY, BOB_KEY, type RestFixture, someTunnel, startRest } from './rest.fixture.ts';

const stage = new UdpStage();
let stand: UdpStand;
let rest: RestFixture;
let port: number;
beforeEach(async () => {
  stand = await stage.start({ perTunnel: 1000, perAddress: 1000 });
  port = await stand.open();
  rest = await startRest({ udp: stand.listeners, monotonic: () => stand.clock.monotonic() });
  const tunnel = { ...someTunnel('tun_udp', ALICE, port), protocol: 'udp' as const };
  rest.tunnels.set('tun_udp', { ...tunnel, endpoint: { kind: 'port', transport: 'udp', port } });
});
afterEach(async () => {
  await rest.stop();
  await stage.clear();
});

const ask = async (token = ALICE_KEY, id = 'tun_udp') => {
  const response = await rest.request(`/api/tunnels/${id}/flows`, { token });
  return { status: response.status, body: (await response.json()) as unknown };
};

const list = async () => edgeFlows.strict().parse((await ask()).body);

describe('GET /api/tunnels/:id/flows, status 200', () => {
  it('lists each flow with its traffic, most recently active first, and the datagram path', async () => {
    const first = await stand.visitor(port);
    const second = await stand.visitor(port);
    await first.echo('one');
    await first.echo('two!');
    await stand.clock.advance(3000);
    await second.echo('hello');
    const { flows, total, path, reason } = await list();
    expect([total, path, reason]).toEqual([2, 'carrier', 'off']);
    expect(flows).toEqual([
      {
        visitor: second.name,
        since: expect.any(String),
        idle_ms: 0,
        confirmed: false,
        datagrams_in: 1,
        datagrams_out: 1,
        bytes_in: 5,
        bytes_out: 5,
        dropped: 0,
      },
      {
        visitor: first.name,
        since: expect.any(String),
        idle_ms: 3000,
        confirmed: true,
        datagrams_in: 2,
        datagrams_out: 2,
        bytes_in: 7,
        bytes_out: 7,
        dropped: 0,
      },
    ]);
    const began = flows.map(({ since }) => Date.parse(since));
    expect((began[0] ?? 0) - (began[1] ?? 0)).toBeGreaterThanOrEqual(2900);
  });

  it('counts each dropped datagram under exactly one reason', async () => {
    const visitor = await stand.visitor(port);
    await visitor.echo('one');
    stand.lose();
    visitor.say('two');
    await eventually(async () => expect((await list()).dropped).toMatchObject({ away: 1, behind: 0, denied: 0 }));
    expect((await list()).flows[0]?.dropped).toBe(1);
  });

  it('lists the 200 most recently active flows and counts all flows', async () => {
    const visitors = await Promise.all(Array.from({ length: 210 }, () => stand.visitor(port)));
    await eventually(() => {
      // The kernel of a busy machine may drop some of so many datagrams, so visitors repeat them. A visitor with a flow does not count
      // twice.
      if (stand.totals.requests < 210) for (const visitor of visitors) visitor.say('hello');
      expect(stand.totals.requests).toBe(210);
    });
    const { flows, total } = await list();
    expect([flows.length, total]).toEqual([API_FLOWS_SHOWN, 210]);
  });

  it('shows the operator an account’s flows', async () => {
    expect((await ask(ADMIN_TOKEN)).status).toBe(200);
  });
});

describe('GET /api/tunnels/:id/flows, status 404', () => {
  it.each([
    ['another’s tunnel', BOB_KEY, 'tun_udp'],
    ['a tunnel that is not udp', ALICE_KEY, 'tun_alice'],
    ['no tunnel', ALICE_KEY, 'tun_none'],
  ])('for %s', async (_, token, id) => {
    const { status, body } = await ask(token, id);
    expect([status, apiError.parse(body).code]).toEqual([404, 'TUNNEL_UNKNOWN']);
  });
});

it('GET /api/tunnels/:id/flows gets a 401 without a key', async () => {
  expect((await rest.request('/api/tunnels/tun_udp/flows')).status).toBe(401);
});
