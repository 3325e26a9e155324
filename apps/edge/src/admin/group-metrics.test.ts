import { createMetrics } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { beforeEach, expect, it } from 'vitest';
import { openGate } from '../ingress/gate.fixture.ts';
import { HttpTotals } from '../ingress/http/http-totals.ts';
import { PeerTotals } from '../ingress/p2p/peer-joins.ts';
import { RelayTotals } from '../ingress/tcp/relay-totals.ts';
import { noTlsTotals } from '../ingress/tls/tls-totals.ts';
import { noDrops, UdpTotals } from '../ingress/udp/udp-totals.ts';
import { ALICE, BOB, GroupStage } from './group.fixture.ts';
import { GROUP_SERIES_KEPT_MS, GroupMetrics } from './group-metrics.ts';
import { EdgeMetrics } from './metrics-server.ts';

let clock: FakeClock;
let stage: GroupStage;
let metrics: EdgeMetrics;
let alerts: Record<string, Record<string, number>>;

const metricsOf = (groups: GroupMetrics | null): EdgeMetrics =>
  new EdgeMetrics(createMetrics(), {
    version: '1.2.3',
    regionId: 'eu',
    tunnels: { values: () => stage.tunnels.values() },
    ports: {
      tcp: { totals: new RelayTotals(), connections: 0 },
      udp: { totals: new UdpTotals(), connections: 0, dropped: noDrops() },
    },
    http: { totals: new HttpTotals(), connections: 0, queuedBytes: 0 },
    tls: noTlsTotals,
    handshakes: openGate().handshakes,
    peers: { totals: new PeerTotals(), counts: { direct: 0, relay: 0 } },
    sessions: () => 0,
    carriers: () => 0,
    streams: () => 0,
    datagramPaths: () => ({ clients: { udp: 3, carrier: 1 }, refused: { forged: 2 }, unopened: 0 }),
    authFailures: () => 0,
    clientsHeldBack: () => 0,
    droppedLogLines: () => 0,
    droppedSpans: () => 0,
    internalErrors: new Map(),
    journalQueue: () => undefined,
    reserved: { countOf: () => 0 },
    restarts: null,
    backups: () => null,
    platformSeries: null,
    certificates: { acmeCertificates: null, files: () => null, now: () => 0 },
    sseConsumers: () => 0,
    admission: openGate().admission,
    policy: {
      answers: () => [],
      passwordChecks: () => ({}),
      providerRequests: () => ({}),
      limiterKeys: () => 0,
      heldBytes: () => 0,
    },
    loadBalancing: groups === null ? null : { groups, alerts, droppedAlerts: { group: 0, account: 2 } },
  });

beforeEach(() => {
  clock = new FakeClock();
  const groups = new GroupMetrics(clock);
  stage = new GroupStage(clock, [groups]);
  alerts = { operator: { delivered: 0, dropped: 0 }, tenant: { delivered: 0 } };
  metrics = metricsOf(groups);
});

const scrape = async (from = metrics): Promise<Record<string, number>> => {
  const lines = (await from.text()).split('\n').filter((line) => /^tunnel_(group|alerts)/.test(line));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
};

const groupSeries = async (): Promise<Record<string, number>> =>
  Object.fromEntries(Object.entries(await scrape()).filter(([name]) => name.startsWith('tunnel_group')));

it('group metrics count members by health, dispatches, and failures by kind of check; members still count as tunnels', async () => {
  const first = await stage.join('tun_1', ALICE, { kind: 'http' });
  const second = await stage.join('tun_2', BOB, { kind: 'tcp' });
  await stage.join('tun_3', BOB, { kind: null });
  stage.healthy(first);
  for (const member of [first, first, second]) member.group?.dispatched(member);
  stage.unhealthy(second);
  stage.unhealthy(second);
  expect(await groupSeries()).toEqual({
    'tunnel_group_members{group="web",region="eu",healthy="true"}': 2,
    'tunnel_group_members{group="web",region="eu",healthy="false"}': 1,
    'tunnel_group_dispatches_total{group="web",region="eu"}': 3,
    'tunnel_group_health_failures_total{group="web",region="eu",kind="http"}': 0,
    'tunnel_group_health_failures_total{group="web",region="eu",kind="tcp"}': 2,
    'tunnel_group_health_failures_total{group="web",region="eu",kind="none"}': 0,
  });
  expect(await metrics.text()).toContain('tunnel_active_tunnels_http 3\n');
});

it('group metrics declare their types', async () => {
  const text = await metrics.text();
  expect(text).toContain('# TYPE tunnel_group_members gauge');
  expect(text).toContain('# TYPE tunnel_group_dispatches_total counter');
  expect(text).toContain('# TYPE tunnel_group_health_failures_total counter');
});

it('series of an ended group stay for five minutes, and continue if the group returns in time', async () => {
  const join = () => stage.join('tun_1', ALICE, { protocol: 'tcp', group: 'db', kind: 'tcp' });
  const first = await join();
  first.group?.dispatched(first);
  stage.leave(first);
  await clock.advance(GROUP_SERIES_KEPT_MS - 1);
  expect(await groupSeries()).toEqual({
    'tunnel_group_members{group="db",region="eu",healthy="true"}': 0,
    'tunnel_group_members{group="db",region="eu",healthy="false"}': 0,
    'tunnel_group_dispatches_total{group="db",region="eu"}': 1,
    'tunnel_group_health_failures_total{group="db",region="eu",kind="tcp"}': 0,
  });
  const again = await join();
  again.group?.dispatched(again);
  expect((await groupSeries())['tunnel_group_dispatches_total{group="db",region="eu"}']).toBe(2);
  stage.leave(again);
  await clock.advance(GROUP_SERIES_KEPT_MS);
  expect(await groupSeries()).toEqual({});
});

it('alerts are counted by outcome and destination, dropped alerts by reason, and every series starts at 0', async () => {
  const name = (outcome: string, destination: string): string =>
    `tunnel_alerts_total{outcome="${outcome}",destination="${destination}"}`;
  const zeros = {
    [name('delivered', 'operator')]: 0,
    [name('dropped', 'operator')]: 0,
    [name('delivered', 'tenant')]: 0,
    'tunnel_alerts_dropped_total{reason="group"}': 0,
    'tunnel_alerts_dropped_total{reason="account"}': 2,
  };
  expect(await scrape()).toEqual(zeros);
  alerts['tenant'] = { delivered: 4 };
  expect(await scrape()).toEqual({ ...zeros, [name('delivered', 'tenant')]: 4 });
});

it('group and alert series are absent while load balancing is off', async () => {
  const text = await metricsOf(null).text();
  expect(text).not.toMatch(/tunnel_group|tunnel_alerts/);
  expect(text).toContain('tunnel_sse_consumers 0');
});

it('2000 groups have their own series', async () => {
  for (let n = 0; n < 2000; n += 1) await stage.join(`tun_${n}`, ALICE, { group: `group-${n}` });
  expect(Object.keys(await groupSeries())).toHaveLength(8000);
});
