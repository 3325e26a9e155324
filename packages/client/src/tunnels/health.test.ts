// Health reports over real connections: sent for changes only, repeated after a reconnect, and ended with the tunnel.
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { type AddressInfo, createConnection, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { inspect } from 'node:util';
import type { MessageOf } from '@tunnel/protocol';
import { createLogger, sha256Hex } from '@tunnel/runtime';
import { eventually, FakeClock, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import type { ConnectOptions } from '../options.ts';
import { ScriptedEdge, type ScriptedSession } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';

let edge: ScriptedEdge;
let service: Server;
let events: StatusEvent[];
const clients: Client[] = [];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  service = createServer((socket) => void socket.on('error', () => {}).resume());
  await listen(0);
  localPort = (service.address() as AddressInfo).port;
  events = [];
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await edge.close();
  service.close();
});

let localPort: number;
const listen = (port: number): Promise<void> => new Promise((resolve) => service.listen(port, '127.0.0.1', resolve));
const stopService = (): Promise<unknown> => new Promise((resolve) => service.close(resolve));

/** Connects a client to the scripted edge. A random value below the real range makes every retry immediate. */
const dial = async (options: Partial<ConnectOptions> = {}): Promise<Client> => {
  const client = await connect({
    server: edge.address,
    token: 'tnl_test',
    random: () => -1,
    onStatus: (event) => events.push(event),
    ...options,
  });
  clients.push(client);
  return client;
};

/** A short probe interval for tests, with a long timeout because a busy machine can respond late. */
const quick = { type: 'tcp', intervalSecs: 0.01, timeoutSecs: 15, maxFailed: 3 } as const;
const member = () =>
  ({ protocol: 'tcp', localPort, name: 'db', group: 'pool', groupKey: 'k', healthCheck: quick }) as const;

type Report = MessageOf<'TunnelHealthy'> | MessageOf<'TunnelUnhealthy'>;
const reportsOf = (session: ScriptedSession): Report[] =>
  session.received.filter((message): message is Report => /^Tunnel(Unh|H)ealthy$/.test(message.type));
const seen = (type: StatusEvent['type']): StatusEvent[] => events.filter((event) => event.type === type);

/** Waits until `count` more probes have reached the service. */
const probes = async (count: number): Promise<void> => {
  let came = 0;
  const onConnection = (): void => void (came += 1);
  service.on('connection', onConnection);
  await eventually(() => expect(came).toBeGreaterThanOrEqual(count));
  service.off('connection', onConnection);
};

describe('the health of a tunnel', () => {
  it('is reported when it changes, not with every probe', async () => {
    const tunnel = await (await dial()).open(member());
    expect(tunnel).toMatchObject({ group: 'pool', health: 'unknown' });
    await probes(5);
    expect(reportsOf(edge.session)).toEqual([{ type: 'TunnelHealthy', tunnel_id: 'tun_1' }]);
    expect(tunnel.health).toBe('healthy');
    await stopService();
    await eventually(() => expect(tunnel.health).toBe('unhealthy'));
    await listen(localPort);
    await eventually(() => expect(tunnel.health).toBe('healthy'));
    await probes(3);
    expect(reportsOf(edge.session)).toEqual([
      { type: 'TunnelHealthy', tunnel_id: 'tun_1' },
      { type: 'TunnelUnhealthy', tunnel_id: 'tun_1', reason: 'connection refused', consecutive_failures: 3 },
      { type: 'TunnelHealthy', tunnel_id: 'tun_1' },
    ]);
    expect(seen('health')).toEqual([
      { type: 'health', tunnel, healthy: true, reason: '', consecutiveFailures: 0 },
      { type: 'health', tunnel, healthy: false, reason: 'connection refused', consecutiveFailures: 3 },
      { type: 'health', tunnel, healthy: true, reason: '', consecutiveFailures: 0 },
    ]);
    const types = events.map((event) => event.type);
    expect(types.indexOf('tunnel-opened')).toBeLessThan(types.indexOf('health'));
  });

  it('is reported as unhealthy after enough failures when the service never ran', async () => {
    await stopService();
    await (await dial()).open(member());
    await eventually(() => expect(reportsOf(edge.session)).toHaveLength(1));
    expect(reportsOf(edge.session)[0]).toMatchObject({ type: 'TunnelUnhealthy', consecutive_failures: 3 });
    await listen(0);
  });

  it('is reported again to every new session, under the new tunnel id', async () => {
    const tunnel = await (await dial()).open(member());
    await eventually(() => expect(reportsOf(edge.session)).toHaveLength(1));
    edge.session.cut();
    await eventually(() => expect(edge.sessions).toHaveLength(2));
    await eventually(() =>
      expect(reportsOf(edge.session)).toEqual([{ type: 'TunnelHealthy', tunnel_id: tunnel.tunnelId }]),
    );
    expect(tunnel.tunnelId).toBe('tun_2');
    await probes(3);
    expect(reportsOf(edge.session)).toHaveLength(1);
    expect(seen('health')).toHaveLength(1);
  });

  it('is probed while the edge is away, and the latest state is reported afterwards', async () => {
    const tunnel = await (await dial()).open(member());
    await eventually(() => expect(tunnel.health).toBe('healthy'));
    let letIn: () => void = () => {};
    edge.script.RegisterTunnel = (message, session) => {
      letIn = () => void edge.registered(session, message);
      return true;
    };
    edge.session.cut();
    await eventually(() => expect(edge.sessions).toHaveLength(2));
    await eventually(() => expect(edge.session.all('RegisterTunnel')).toHaveLength(1));
    await stopService();
    await eventually(() => expect(tunnel.health).toBe('unhealthy'));
    expect(tunnel.state).toBe('away');
    expect(reportsOf(edge.session)).toEqual([]);
    letIn();
    await eventually(() => expect(reportsOf(edge.session)).toMatchObject([{ type: 'TunnelUnhealthy' }]));
    expect(reportsOf(edge.session)[0]).toMatchObject({ tunnel_id: tunnel.tunnelId, reason: 'connection refused' });
    await listen(0);
  });

  it('is probed over HTTP with the service’s own Host header', async () => {
    service.removeAllListeners('connection');
    const heads: string[] = [];
    service.on('connection', (socket) => {
      socket.on('error', () => {});
      socket.once('data', (head) => {
        heads.push(String(head));
        socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n');
      });
    });
    const healthCheck = { ...quick, type: 'http', path: '/healthz', maxFailed: 1 } as const;
    await (await dial()).open({ protocol: 'http', localPort, healthCheck });
    await eventually(() => expect(reportsOf(edge.session)).toMatchObject([{ reason: 'status 503' }]));
    expect(heads[0]).toContain(`GET /healthz HTTP/1.0\r\nHost: 127.0.0.1:${localPort}\r\n`);
  });

  it('is not probed and not reported when the health check has no type', async () => {
    const healthCheck = { alertWebhook: 'https://hooks.example.com/x' };
    let came = 0;
    service.on('connection', () => void (came += 1));
    const tunnel = await (await dial()).open({ ...member(), healthCheck });
    expect(tunnel.health).toBe('none');
    await (await dial()).open({ ...member(), name: 'probed' });
    await eventually(() => expect(came).toBeGreaterThan(3));
    expect(reportsOf(edge.sessions[0] as ScriptedSession)).toEqual([]);
    expect(edge.sessions[0]?.all('RegisterTunnel')[0]?.health_check).toMatchObject({
      alert_webhook: healthCheck.alertWebhook,
    });
    expect(edge.sessions[0]?.all('RegisterTunnel')[0]?.health_check?.type).toBeUndefined();
  });
});

describe('health probes end', () => {
  let came: Set<number | undefined>;
  let clock: FakeClock;

  beforeEach(() => {
    clock = new FakeClock();
    came = new Set();
    service.on('connection', ({ remotePort }) => came.add(remotePort));
  });

  /**
   * Counts the probes that have arrived. Connections are accepted in order, so earlier probes have arrived once the test's own connection
   * has.
   */
  const arrivals = async (): Promise<number> => {
    const own = createConnection(localPort, '127.0.0.1');
    await once(own, 'connect');
    const { localPort: ownPort } = own;
    await eventually(() => expect(came).toContain(ownPort));
    own.destroy();
    came.delete(ownPort);
    return came.size;
  };

  const expectQuiet = async (): Promise<void> => {
    const before = await arrivals();
    await clock.advance(1000);
    expect(await arrivals()).toBe(before);
  };

  it.each([
    ['with their tunnel', async (client: Client) => client.tunnels[0]?.close()],
    ['with the client', async (client: Client) => client.close()],
    [
      'when the edge closes the tunnel',
      async (client: Client) => {
        const tunnel_id = client.tunnels[0]?.tunnelId ?? '';
        const code = 'TUNNEL_CLOSED_BY_OPERATOR';
        edge.session.send({ type: 'TunnelError', tunnel_id, code, message: 'closed', retryable: false });
        await eventually(() => expect(client.tunnels).toEqual([]));
      },
    ],
  ])('%s', async (_, end) => {
    const client = await dial({ clock });
    await client.open(member());
    await eventually(() => expect(reportsOf(edge.session)).toHaveLength(1));
    const before = await arrivals();
    await clock.advance(15);
    expect(await arrivals()).toBeGreaterThan(before);
    await end(client);
    await expectQuiet();
    await client.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it('when a listener closes the tunnel as soon as it is open', async () => {
    const onStatus = (event: StatusEvent): void => {
      if (event.type === 'tunnel-opened') void event.tunnel.close();
    };
    const client = await dial({ clock, onStatus });
    await client.open(member());
    await expectQuiet();
    expect(reportsOf(edge.session)).toEqual([]);
    await client.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it('before the first probe when the tunnel is refused', async () => {
    edge.script.RegisterTunnel = ({ request_id }, session) => {
      const code = 'GROUP_KEY_MISMATCH';
      session.send({ type: 'TunnelError', request_id, code, message: 'group key does not match', retryable: true });
      return true;
    };
    await expect((await dial({ clock })).open(member())).rejects.toThrow('group key does not match');
    await clock.advance(1000);
    expect(await arrivals()).toBe(0);
  });
});

describe('a tunnel in a group', () => {
  it('sends the name of the group and the hash of the key, which stays in the process', async () => {
    const home = await temporaryDirectory();
    const lines: string[] = [];
    const stream = new PassThrough().on('data', (line) => lines.push(String(line)));
    const logger = createLogger({ level: 'debug', format: 'json', stream });
    const key = 'correct horse ✓';
    const client = await dial({ stateDir: home.path, logger });
    const tunnel = await client.open({ ...member(), groupKey: key });
    const asked = edge.session.all('RegisterTunnel')[0];
    expect(asked).toMatchObject({ group: 'pool', group_key_hash: sha256Hex(key) });
    expect(asked?.group_key_hash).toMatch(/^[0-9a-f]{64}$/);
    // The edge reports the group port as bound; the client logs the message and changes nothing.
    edge.session.send({ type: 'Registered', tunnel_id: tunnel.tunnelId, assigned_port: 20_001 });
    await eventually(() => expect(lines.join('')).toContain('group port is open'));
    expect(client.state).toBe('connected');
    expect(edge.session.all('Error')).toEqual([]);
    const state = await Promise.all((await readdir(home.path)).map((name) => readFile(join(home.path, name), 'utf8')));
    expect(state.join()).toContain('pool');
    const everything = [state, lines, edge.session.received, inspect([tunnel, events], { depth: 9 })];
    expect(JSON.stringify(everything)).not.toContain('correct horse');
    await client.close();
    await home.close();
  });

  it('sends the same group request after a reconnect, and prefers its assigned endpoint', async () => {
    const client = await dial();
    await client.open({ ...member(), protocol: 'http', name: 'web', subdomain: 'shop' });
    await client.open({ ...member(), protocol: 'http', name: 'other' });
    await client.open(member());
    const before = edge.session.all('RegisterTunnel');
    edge.session.cut();
    await eventually(() => expect(seen('reconnected')).toHaveLength(1));
    const again = edge.session.all('RegisterTunnel');
    const groupOf = ({ group, group_key_hash, health_check, subdomain }: MessageOf<'RegisterTunnel'>) => ({
      group,
      group_key_hash,
      health_check,
      subdomain,
    });
    expect(again.map(groupOf)).toEqual(before.map(groupOf));
    expect(again).toMatchObject([{ subdomain: 'shop' }, { preferred_subdomain: 'name-2' }, { preferred_port: 20_003 }]);
    expect(again[0]?.preferred_subdomain).toBeUndefined();
  });

  it('does not ask for the endpoint from a previous group', async () => {
    const home = await temporaryDirectory();
    const options = { stateDir: home.path };
    const killed = await dial(options);
    await killed.open({ ...member(), protocol: 'http' });
    edge.session.send({ type: 'Error', code: 'CONTROL_REPLACED', message: 'gone', fatal: true });
    await killed.closed;
    await (await dial(options)).open({ ...member(), protocol: 'http', group: 'blue' });
    expect(edge.session.all('Auth')[0]?.resume).toBeDefined();
    expect(edge.session.all('RegisterTunnel')[0]?.preferred_subdomain).toBeUndefined();
    await home.close();
  });
});
