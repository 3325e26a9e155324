// Groups over the real control port: joining, starting a group, notifications, and no lost members or leaked ports.
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GroupWatcher } from '../routing/groups.ts';
import {
  type ControlFixture,
  type ControlFixtureOptions,
  startControl,
  tryPort,
  WINDOW_MS,
} from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

const KEY = '1'.repeat(64);
const OTHER = '2'.repeat(64);
const GROUP = { group: 'pool', group_key_hash: KEY };
const WEB = { ...GROUP, protocol: 'http', subdomain: 'web' };
const PROBED = { health_check: { type: 'tcp' } };

let clock: FakeClock;
let fixture: ControlFixture;
let told: string[];

const watcher: GroupWatcher = {
  groupAdded: (group) => void told.push(`begins ${group.label}`),
  groupRemoved: (group) => void told.push(`ends ${group.label}`),
  memberHealthChanged: ({ healthy, reason }) => void told.push(healthy ? 'up' : `down: ${reason}`),
  failureReported: (_, kind) => void told.push(`failure ${kind}`),
  zeroHealthy: ({ memberCount, urls }) => void told.push(`alert ${memberCount} ${urls.join()}`),
};

type StartOptions = Pick<ControlFixtureOptions, 'loadBalancing' | 'checkAlertUrl'>;

const start = async (options: StartOptions = {}): Promise<void> => {
  clock = new FakeClock();
  told = [];
  fixture = await startControl({ clock, ports: 3, tunnelsPerSession: 5, watchers: [watcher], ...options });
};

beforeEach(() => start());
afterEach(() => fixture.stop());

const enter = async (token = 'alice', resume?: { session_id: string; secret: string }) => {
  const { client, welcome } = await RawClient.enter(fixture.port, token, resume);
  return { client, welcome, claim: { session_id: welcome.session_id, secret: welcome.resume_secret } };
};

const member = async (fields: object = GROUP, token = 'alice') => {
  const { client, claim } = await enter(token);
  return { client, claim, tunnel: await client.registered(fields) };
};

const groups = () => [...fixture.tunnels.groups.values()];
const only = () => groups()[0] as ReturnType<typeof groups>[number];
const free = async (port: number): Promise<boolean> => {
  const server = await tryPort(port);
  server?.close();
  return server !== null;
};

describe('joining a group', () => {
  it('gives all tcp members the same port, and only the first member is told that the port is bound', async () => {
    const first = await member();
    const second = await member(GROUP, 'bob');
    expect(second.tunnel.assigned_port).toBe(first.tunnel.assigned_port);
    expect(await first.client.next('Registered')).toEqual({
      type: 'Registered',
      tunnel_id: first.tunnel.tunnel_id,
      assigned_port: first.tunnel.assigned_port,
    });
    await second.client.settle();
    const solo = await enter();
    await solo.client.registered();
    await solo.client.settle();
    expect([second.client.heard, solo.client.heard]).toEqual([[], []]);
    expect([only().memberCount, fixture.tunnels.size]).toEqual([2, 3]);
  });

  it.each([
    ['tcp', GROUP],
    ['http', WEB],
  ])('with ten concurrent first registrations creates one %s group', async (_, fields) => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => enter()));
    const tunnels = await Promise.all(clients.map(({ client }) => client.registered(fields)));
    expect(new Set(tunnels.map(({ public_url }) => public_url)).size).toBe(1);
    expect([groups().length, only().memberCount, only().healthyCount]).toEqual([1, 10, 10]);
    expect(told).toEqual([`begins ${only().label}`]);
  });

  it('is refused in the order of the rules, with the message of the first broken rule', async () => {
    const { client } = await member(WEB);
    await client.registered({ protocol: 'http', subdomain: 'solo' });
    const messageOf = async (fields: object) => (await client.refused({ protocol: 'http', ...fields })).message;
    expect(await messageOf({ ...GROUP, subdomain: '-' })).toMatch(/^subdomain '-' is not valid/);
    expect(await messageOf({ subdomain: 'web' })).toBe("subdomain 'web' is already in use");
    expect(await messageOf({ ...GROUP, subdomain: 'solo' })).toBe('group key does not match');
    expect(await messageOf({ ...WEB, group_key_hash: OTHER, protocol: 'https' })).toBe('group key does not match');
    expect(await messageOf({ ...WEB, protocol: 'https' })).toBe('group protocol does not match');
    await client.registered({ ...WEB, group: 'another name' });
    expect([only().name, only().memberCount]).toEqual(['pool', 2]);
  });

  it('with another key is refused to a tcp group’s account, and creates a separate group for another account', async () => {
    await member();
    const alice = await enter();
    expect((await alice.client.refused({ ...GROUP, group_key_hash: OTHER })).message).toBe('group key does not match');
    await member({ ...GROUP, group_key_hash: OTHER }, 'bob');
    expect(groups()).toHaveLength(2);
  });

  it('with two keys at once creates one group for an account, not two', async () => {
    const [a, b] = await Promise.all([enter(), enter()]);
    a.client.register(GROUP);
    b.client.register({ ...GROUP, group_key_hash: OTHER });
    const answers = await Promise.all(
      [a, b].map(async ({ client }) => {
        await eventually(() => expect(client.heard.length).toBeGreaterThan(0));
        return client.heard[0]?.type;
      }),
    );
    expect([new Set(answers), groups().length]).toEqual([new Set(['TunnelError', 'TunnelRegistered']), 1]);
  });

  it('with a requested port uses the port for a new group, and warns if the group has another port', async () => {
    const { from } = fixture.range;
    const first = await member({ ...GROUP, remote_port: from + 1 });
    expect([first.tunnel.assigned_port, first.tunnel.warnings]).toEqual([from + 1, []]);
    const second = await member({ ...GROUP, remote_port: from + 2 });
    expect(second.tunnel).toMatchObject({
      assigned_port: from + 1,
      warnings: [`remote_port ${from + 2}: the group has port ${from + 1} already`],
    });
  });

  it('warns about a rejected alert URL, and about an alert URL without a group', async () => {
    const webhook = { health_check: { alert_webhook: 'https://refused.test/' } };
    expect((await member({ ...GROUP, ...webhook })).tunnel.warnings).toEqual([
      'alert webhook rejected: https://refused.test/',
    ]);
    expect((await member({ ...webhook })).tunnel.warnings[0]).toMatch(/without a group/);
  });

  it('bounds the total time for checking alert URLs per connection, regardless of the number of tunnels', async () => {
    await fixture.stop();
    const allowed: number[] = [];
    const slowly = async (_url: string, withinMs: number): Promise<null> => {
      allowed.push(withinMs);
      await clock.advance(2000);
      return null;
    };
    await start({ checkAlertUrl: slowly });
    const named = { ...GROUP, health_check: { alert_webhook: 'https://silent.test/' } };
    const { client, claim } = await enter();
    for (let n = 0; n < 4; n += 1) await client.registered(named);
    expect(allowed).toEqual([5000, 3000, 1000, -1000]);
    const back = await enter('alice', claim);
    await back.client.registered(named);
    expect(allowed.at(-1)).toBe(5000);
  });
});

describe('leaving a group', () => {
  it('as the last member ends the group and frees its port, and the next registration starts a new group', async () => {
    const { client, tunnel } = await member();
    const groupId = only().groupId;
    client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id: tunnel.tunnel_id });
    await client.next('TunnelUnregistered');
    expect(groups()).toEqual([]);
    await eventually(async () => expect(await free(tunnel.assigned_port as number)).toBe(true));
    await client.registered(GROUP);
    expect(only().groupId).not.toBe(groupId);
    expect(fixture.backend.closed).toHaveLength(1);
  });

  it('while other members join, repeated 25 times, loses no member and leaks no port', async () => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => enter()));
    for (let round = 0; round < 25; round += 1) {
      const tunnels = await Promise.all(clients.map(({ client }) => client.registered(GROUP)));
      expect([groups().length, only().memberCount]).toEqual([1, 4]);
      // The last member leaves while the first member joins again. The first member either joins the old group or starts a new group.
      await Promise.all(
        clients.map(({ client }, at) => {
          const { tunnel_id } = tunnels[at] as (typeof tunnels)[number];
          client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id });
          if (at % 2 === 0)
            return client.registered(GROUP).then(async (again) => {
              client.send({ type: 'UnregisterTunnel', request_id: 'v', tunnel_id: again.tunnel_id });
              await client.settle();
            });
          return client.settle();
        }),
      );
      await eventually(() => expect([groups().length, fixture.tunnels.size]).toEqual([0, 0]));
    }
    // All three ports can be assigned again.
    const solo = await enter();
    for (let n = 0; n < 3; n += 1) {
      await eventually(async () => {
        solo.client.register();
        expect((await solo.client.next('TunnelRegistered')).assigned_port).toBeDefined();
      });
    }
    expect(new Set([...fixture.tunnels.values()].map(({ assignedPort }) => assignedPort)).size).toBe(3);
  });

  it('while its port is being opened leaves no group and no open port', async () => {
    const { client } = await enter();
    client.register(GROUP);
    client.ws.terminate();
    await eventually(() => expect(fixture.control.figures.sessions).toBe(0));
    await eventually(async () => {
      expect([groups(), await free(fixture.range.from)]).toEqual([[], true]);
    });
    expect(fixture.tunnels.size).toBe(0);
  });
});

describe('the health of a member', () => {
  const report = (client: RawClient, tunnelId: string, healthy: boolean, failures = 3): Promise<void> => {
    client.send(
      healthy
        ? { type: 'TunnelHealthy', tunnel_id: tunnelId }
        : { type: 'TunnelUnhealthy', tunnel_id: tunnelId, reason: 'refused', consecutive_failures: failures },
    );
    return client.settle();
  };

  it('decides whether the member is picked, and a group without healthy members sends one alert', async () => {
    const { client, tunnel } = await member({ ...WEB, ...PROBED });
    expect(only().pick(Math.random)).toBeNull();
    await report(client, tunnel.tunnel_id, false);
    await report(client, tunnel.tunnel_id, true);
    await report(client, tunnel.tunnel_id, true);
    expect(only().pick(Math.random)?.tunnelId).toBe(tunnel.tunnel_id);
    await report(client, tunnel.tunnel_id, false);
    await report(client, tunnel.tunnel_id, false);
    expect(only().pick(Math.random)).toBeNull();
    expect(told).toEqual([
      'begins web',
      'failure tcp',
      'up',
      'failure tcp',
      'down: refused',
      'alert 1 ',
      'failure tcp',
    ]);
    expect(fixture.tunnels.get(tunnel.tunnel_id)?.health.history).toHaveLength(2);
  });

  it('cannot be reported by another client', async () => {
    const { client, tunnel } = await member({ ...WEB, ...PROBED });
    await report(client, tunnel.tunnel_id, true);
    const stranger = await enter('bob');
    await report(stranger.client, tunnel.tunnel_id, false);
    expect(only().healthyCount).toBe(1);
  });

  it('is recorded for a tunnel outside a group, without further effects', async () => {
    const { client, tunnel } = await member(PROBED);
    await report(client, tunnel.tunnel_id, true);
    await report(client, tunnel.tunnel_id, false);
    expect(fixture.tunnels.get(tunnel.tunnel_id)?.health).toMatchObject({ healthy: false, totalFailures: 1 });
    expect(told).toEqual([]);
  });

  it('sends an alert when the last healthy member is cut off, but not when the group ends with it', async () => {
    const url = { alert_webhook: 'https://left.test/' };
    const last = await member({ ...WEB, health_check: url });
    const other = await member({ ...WEB, ...PROBED });
    last.client.ws.terminate();
    await eventually(() => expect(told).toContain('alert 1 https://left.test/'));
    told.length = 0;
    await report(other.client, other.tunnel.tunnel_id, true);
    await other.client.registered({ ...WEB, ...PROBED });
    other.client.ws.terminate();
    await eventually(() => expect(told.at(-1)).toBe('ends web'));
    expect(told).toEqual(['up', 'ends web']);
  });

  it('sends no alert while the edge shuts down', async () => {
    await member(WEB);
    await member({ ...WEB, ...PROBED });
    await fixture.control.end();
    expect(told.filter((line) => line.startsWith('alert'))).toEqual([]);
    expect(groups()).toEqual([]);
  });
});

describe('a returning group member', () => {
  it('replacing its old connection keeps its place and health, without notifications', async () => {
    const { client, tunnel, claim } = await member({ ...WEB, ...PROBED });
    client.send({ type: 'TunnelHealthy', tunnel_id: tunnel.tunnel_id });
    await client.settle();
    told.length = 0;
    const back = await enter('alice', claim);
    expect(only().healthyCount).toBe(1);
    await back.client.registered({ ...WEB, ...PROBED, tunnel_id: tunnel.tunnel_id });
    expect([only().memberCount, only().healthyCount, told]).toEqual([1, 1, []]);
    expect(only().pick(Math.random)).toBe(fixture.tunnels.get(tunnel.tunnel_id));
    back.client.ws.terminate();
    await eventually(() => expect(groups()).toEqual([]));
  });

  it('after a loss rejoins under its id as unhealthy, in a new group if the old group has ended', async () => {
    const { client, tunnel, claim } = await member({ ...GROUP, ...PROBED });
    client.send({ type: 'TunnelHealthy', tunnel_id: tunnel.tunnel_id });
    await client.settle();
    client.ws.terminate();
    await eventually(() => expect(groups()).toEqual([]));
    expect(fixture.backend.closed).toEqual([]);
    const back = await enter('alice', claim);
    const again = await back.client.registered({ ...GROUP, ...PROBED, tunnel_id: tunnel.tunnel_id });
    expect(again.tunnel_id).toBe(tunnel.tunnel_id);
    expect(await back.client.next('Registered')).toMatchObject({ tunnel_id: tunnel.tunnel_id });
    expect([only().memberCount, only().healthyCount]).toEqual([1, 0]);
    expect([fixture.backend.opened.length, fixture.backend.closed.length]).toEqual([1, 0]);
  });

  it('registering for another group joins as a new, unhealthy tunnel', async () => {
    const { client, tunnel } = await member({ ...WEB, ...PROBED });
    client.send({ type: 'TunnelHealthy', tunnel_id: tunnel.tunnel_id });
    await client.settle();
    const elsewhere = { ...WEB, ...PROBED, subdomain: 'other', tunnel_id: tunnel.tunnel_id };
    // The new endpoint may belong to another account, so the backend is asked as for a new tunnel.
    expect((await client.registered(elsewhere)).tunnel_id).not.toBe(tunnel.tunnel_id);
    expect(fixture.backend.asked.map(({ endpoint }) => endpoint?.label)).toEqual(['web', 'other']);
    expect(groups().map(({ label, memberCount, healthyCount }) => [label, memberCount, healthyCount])).toEqual([
      ['other', 1, 0],
    ]);
  });

  it('after the resume window finds its record closed, and its name was free meanwhile', async () => {
    const { client, tunnel } = await member(WEB);
    client.ws.terminate();
    await eventually(() => expect(groups()).toEqual([]));
    await member({ protocol: 'http', subdomain: 'web' }, 'bob');
    await clock.advance(WINDOW_MS);
    expect(fixture.backend.closed).toMatchObject([{ tunnelId: tunnel.tunnel_id }]);
  });

  it('switching between group and single tunnel under the same name becomes another tunnel', async () => {
    const { client, tunnel, claim } = await member({ protocol: 'http', subdomain: 'web' });
    client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.size).toBe(0));
    const back = await enter('alice', claim);
    const joined = await back.client.registered({ ...WEB, tunnel_id: tunnel.tunnel_id });
    expect(joined.tunnel_id).not.toBe(tunnel.tunnel_id);
    expect(only().memberCount).toBe(1);
    const alone = await back.client.registered({ protocol: 'http', subdomain: 'web', tunnel_id: joined.tunnel_id });
    expect([groups(), fixture.tunnels.size, alone.label]).toEqual([[], 1, 'web']);
  });
});

describe('an edge with load balancing off', () => {
  beforeEach(async () => {
    await fixture.stop();
    await start({ loadBalancing: false });
  });

  it('serves every registration as a single tunnel: a used name is refused, and each tcp tunnel has its own port', async () => {
    const first = await member({ ...GROUP, ...PROBED });
    const second = await member({ ...GROUP, group_key_hash: 'no hash at all' });
    const said = 'load balancing is off on this edge: this tunnel is served alone';
    expect([first.tunnel.warnings, second.tunnel.warnings]).toEqual([[said], [said]]);
    expect((await member({ ...PROBED })).tunnel.warnings).toEqual([]);
    expect(second.tunnel.assigned_port).not.toBe(first.tunnel.assigned_port);
    await member(WEB);
    expect((await first.client.refused(WEB)).message).toBe("subdomain 'web' is already in use");
    first.client.send({
      type: 'TunnelUnhealthy',
      tunnel_id: first.tunnel.tunnel_id,
      reason: 'refused',
      consecutive_failures: 3,
    });
    await first.client.settle();
    expect(fixture.tunnels.get(first.tunnel.tunnel_id)?.health).toMatchObject({ healthy: true, totalFailures: 0 });
    expect([groups(), first.client.heard.filter(({ type }) => type === 'Registered')]).toEqual([[], []]);
  });
});
