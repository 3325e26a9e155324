// Groups with real clients on a real edge: the command, the API, the events and the metrics must agree.
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { GroupEvent, GroupSummary } from '@tunnel/contract';
import type { Edge } from '@tunnel/edge';
import { sha256Hex } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';
import { Runs, type Started } from '../run/runs.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let service: Server;
let status: number;
const runs = new Runs();

beforeEach(async () => {
  home = await temporaryDirectory();
  status = 200;
  service = createServer((_, response) => response.writeHead(status).end()).listen(0, '127.0.0.1');
  await once(service, 'listening');
  edge = await startEdge({
    load_balancing: { enabled: true },
    auth: { keys: ['alice', 'bob'].map((account) => ({ account, sha256: sha256Hex(account) })) },
  });
});
afterEach(async () => {
  await runs.end();
  await edge.stop({ drainMs: 0 });
  service.close();
  service.closeAllConnections();
  await home.close();
});

const servicePort = (): number => (service.address() as AddressInfo).port;
const api = (): string => `http://127.0.0.1:${edge.addresses.api.port}`;

const join = async (key: string, health: readonly string[]): Promise<Started> => {
  const io = makeTestIo({ home: home.path, env: { K: 'shared' } });
  const args = [
    'http',
    `${servicePort()}`,
    '--group',
    'shop',
    '--group-key-env',
    'K',
    '--json',
    '--no-inspect',
    ...health,
  ];
  const server = `127.0.0.1:${edge.addresses.control.port}`;
  const started = runs.start([...args, '--server', server, '--token', key, '--drain-secs', '0'], io);
  await eventually(() => expect(io.events().some(({ event }) => event === 'ready')).toBe(true));
  return started;
};

const groupsOf = async (key: string): Promise<GroupSummary[]> => {
  const io = makeTestIo({ home: home.path });
  expect(await run(['groups', '--json', '--api', api(), '--token', key], io)).toBe(0);
  return JSON.parse(io.out()) as GroupSummary[];
};

const series = async (name: string): Promise<number | undefined> => {
  const text = await (await fetch(`http://127.0.0.1:${edge.addresses.metrics.port}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
};

it('each API key sees only its own members of a shared group, and gets events when they fail and recover', async () => {
  const alice = await join('alice', ['--health', 'http:/', '--health-interval', '0.1', '--health-max-failed', '1']);
  await join('bob', []);
  await eventually(async () =>
    expect((await groupsOf('admin'))[0]).toMatchObject({ member_count: 2, healthy_count: 2 }),
  );
  const [own] = await groupsOf('alice');
  expect(own).toMatchObject({ protocol: 'http', label: 'shop', name: 'shop', region_id: 'local', member_count: 1 });
  expect(own?.members[0]).toMatchObject({ healthy: true, health_check_kind: 'http' });

  const watched = await fetch(`${api()}/api/groups/http/shop/events`, { headers: { authorization: 'Bearer alice' } });
  let heard = '';
  const reading = watched.body?.pipeTo(
    new WritableStream({ write: (part: Uint8Array) => void (heard += Buffer.from(part).toString()) }),
  );
  const events = (): GroupEvent[] =>
    [...heard.matchAll(/^event: group_event\ndata: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as GroupEvent);
  status = 503;
  await eventually(() => expect(events()).toHaveLength(1));
  expect(events()[0]).toMatchObject({ healthy: false, reason: 'status 503', healthy_count: 0, member_count: 1 });
  expect((await groupsOf('admin'))[0]).toMatchObject({ healthy_count: 1, unhealthy_count: 1 });
  expect(await series('tunnel_group_members{group="shop",region="local",healthy="false"}')).toBe(1);
  expect(
    await series('tunnel_group_health_failures_total{group="shop",region="local",kind="http"}'),
  ).toBeGreaterThanOrEqual(1);
  status = 200;
  await eventually(() => expect(events().at(-1)).toMatchObject({ healthy: true, healthy_count: 1 }));

  // When Alice's last member leaves, the event stream ends and the group disappears from her list.
  alice.io.signal('SIGTERM');
  expect(await alice.code).toBe(0);
  await reading;
  expect(await groupsOf('alice')).toEqual([]);
  expect((await groupsOf('bob'))[0]).toMatchObject({ member_count: 1, healthy_count: 1 });
});

it('command, group members and metrics report the same number of dispatches', async () => {
  await join('alice', []);
  await join('alice', []);
  const { port } = edge.addresses.http;
  for (let n = 0; n < 5; n += 1) {
    const asked = request({ port, host: '127.0.0.1', headers: { host: 'shop.localhost' }, agent: false }).end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
  }
  const [group] = await groupsOf('alice');
  expect(group?.total_dispatches).toBe(5);
  expect(group?.members.reduce((sum, member) => sum + member.request_count, 0)).toBe(5);
  expect(await series('tunnel_group_dispatches_total{group="shop",region="local"}')).toBe(5);
});

it('a drain does not wait for listeners of group events', async () => {
  await join('alice', []);
  const watched = await fetch(`${api()}/api/groups/http/shop/events`, { headers: { authorization: 'Bearer admin' } });
  const before = performance.now();
  const stopped = edge.stop({ drainMs: 20_000 });
  await watched.text();
  await stopped;
  expect(performance.now() - before).toBeLessThan(15_000);
});
