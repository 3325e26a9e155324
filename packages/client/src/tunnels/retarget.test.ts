// An open tunnel gets another local target: the effect on visitors, and the messages to the edge.
import type { MuxStream } from '@tunnel/mux';
import type { MessageOf } from '@tunnel/protocol';
import { eventually, RecordingReader, rethrow, startTcpServer, type TcpServer } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';
import type { TunnelEntry, TunnelTarget } from './tunnel.ts';
import type { TunnelOptions } from './tunnel-spec.ts';

let edge: ScriptedEdge;
let client: Client;
let events: StatusEvent[];
let old: TcpServer;
let other: TcpServer;
let probesOfOther: number;

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  old = await startTcpServer((socket) => void socket.on('error', () => {}).write('old'));
  probesOfOther = 0;
  other = await startTcpServer((socket) => {
    probesOfOther += 1;
    socket.on('error', () => {}).write('other');
  });
  events = [];
  client = await connect({
    server: edge.address,
    token: 'tnl_test',
    random: () => -1,
    onStatus: (event) => events.push(event),
  });
});
afterEach(async () => {
  await client.close();
  await Promise.all([edge.close(), old.close(), other.close()]);
});

const visit = async (tunnelId: string): Promise<RecordingReader> => {
  const stream = await new Promise<MuxStream>((resolve, reject) => {
    const refuse = (reason: { text: string }): void => reject(new Error(reason.text));
    edge.session.mux.open({ tunnelId, visitor: '' }, { onOpened: resolve, onRefused: refuse, abandon: rethrow });
  });
  return new RecordingReader(stream);
};

/** Names the answering service, by the length of the greeting. */
const heard = ({ bytes }: RecordingReader): string => ({ 0: '', 3: 'old', 5: 'other' })[bytes] ?? 'both';
const registrations = (): MessageOf<'RegisterTunnel'>[] => edge.session.all('RegisterTunnel');

describe('retargeting a tunnel', () => {
  it('sends new visitors to the new service, keeps existing visitors, and tells the edge nothing', async () => {
    const tunnel = await client.open({ protocol: 'tcp', name: 'db', localPort: old.port });
    const before = await visit(tunnel.tunnelId);
    await eventually(() => expect(heard(before)).toBe('old'));
    const frames = edge.session.received.length;
    await tunnel.retarget({ localPort: other.port });
    const after = await visit(tunnel.tunnelId);
    await eventually(() => expect(heard(after)).toBe('other'));
    expect([before.ended, before.reset]).toEqual([false, null]);
    expect(edge.session.received.slice(frames).filter(({ type }) => type !== 'Ping' && type !== 'Pong')).toEqual([]);
    expect(tunnel).toMatchObject({ localPort: other.port, local: `127.0.0.1:${other.port}`, name: 'db' });
    expect(tunnel.spec).toMatchObject({ localPort: other.port });
  });

  it('with another local protocol registers the tunnel again and waits for the edge', async () => {
    const tunnel = await client.open({ protocol: 'http', name: 'web', localPort: old.port });
    let answer: () => void = () => {};
    edge.script = {
      RegisterTunnel: (message, session) => {
        answer = () => void edge.registered(session, message);
        return true;
      },
    };
    let isSettled = false;
    const retargeted = tunnel.retarget({ localPort: other.port, localProtocol: 'h2c' }).then(() => {
      isSettled = true;
    });
    await eventually(() => expect(registrations()).toHaveLength(2));
    expect(registrations()[1]).toMatchObject({
      tunnel_id: tunnel.tunnelId,
      local_addr: `127.0.0.1:${other.port}`,
      local_protocol: 'h2c',
      preferred_subdomain: tunnel.label,
    });
    // New connections already go to the new service.
    const visitor = await visit(tunnel.tunnelId);
    await eventually(() => expect(heard(visitor)).toBe('other'));
    expect(isSettled).toBe(false);
    answer();
    await retargeted;
    expect(events.map(({ type }) => type).filter((type) => type.startsWith('tunnel-'))).toEqual(['tunnel-opened']);
  });

  it('that is away or not yet open takes effect with the next registration', async () => {
    let answer: () => void = () => {};
    edge.script = {
      RegisterTunnel: (message, session) => {
        answer = () => void edge.registered(session, message);
        return true;
      },
    };
    const opening = client.open({ protocol: 'http', name: 'web', localPort: old.port });
    await eventually(() => expect(registrations()).toHaveLength(1));
    const retargeted = client.find('web')?.retarget({ localPort: other.port });
    edge.script = {};
    answer();
    const tunnel = await opening;
    await retargeted;
    expect(registrations()).toHaveLength(2);

    // The tunnel stays away until the edge accepts the next session.
    let welcome: () => void = () => {};
    edge.script = {
      Auth: (_message, session) => {
        welcome = () => edge.welcome(session, false);
        return true;
      },
    };
    edge.session.cut();
    await eventually(() => expect(edge.sessions).toHaveLength(2));
    await eventually(() => expect(edge.session.all('Auth')).toHaveLength(1));
    expect(tunnel.state).toBe('away');
    await tunnel.retarget({ localPort: old.port });
    edge.script = {};
    welcome();
    await eventually(() => expect(tunnel.state).toBe('open'));
    expect(registrations().map(({ local_addr }) => local_addr)).toEqual([`127.0.0.1:${old.port}`]);
  });

  it('with certificate checks turned on applies them to named services too', async () => {
    const spec = { protocol: 'https', name: 'web', localPort: old.port, services: { api: other.port } } as const;
    const tunnel = (await client.open({ ...spec, localTlsVerify: false })) as TunnelEntry;
    expect(tunnel.serviceTarget('api')).toMatchObject({ tls: { verify: false } });
    await tunnel.retarget({ localPort: old.port, localTlsVerify: true });
    expect([tunnel.target, tunnel.serviceTarget('api')]).toMatchObject([
      { tls: { verify: true } },
      { tls: { verify: true } },
    ]);
  });

  it('probes the new service', async () => {
    const healthCheck = { type: 'tcp', intervalSecs: 0.01, timeoutSecs: 15 } as const;
    const tunnel = await client.open({ protocol: 'tcp', name: 'db', localPort: old.port, healthCheck });
    await eventually(() => expect(tunnel.health).toBe('healthy'));
    await tunnel.retarget({ localPort: other.port });
    await eventually(() => expect(probesOfOther).toBeGreaterThan(2));
    expect(tunnel.spec.healthCheck).toEqual(healthCheck);
    await other.close();
    await eventually(() => expect(tunnel.health).toBe('unhealthy'));
    await tunnel.retarget({ localPort: old.port, healthCheck: { ...healthCheck, intervalSecs: 0.02 } });
    await eventually(() => expect(tunnel.health).toBe('healthy'));
    expect(registrations()).toHaveLength(1);
  });

  it.each<[string, Partial<TunnelOptions>, TunnelTarget, string]>([
    ['a port that is none', {}, { localPort: 0 }, 'whole number from 1 to 65535'],
    ['two targets', {}, { localPort: 1, localSocket: '/run/x.sock' }, 'one of'],
    ['the address that the edge writes into requests', { hostHeader: 'rewrite' }, { localPort: 1 }, 'open it again'],
    ['the first health check', {}, { localPort: 1, healthCheck: { type: 'tcp' } }, 'open it again'],
  ])('with %s is refused and changes nothing', async (_what, spec, target, words) => {
    const tunnel = await client.open({ protocol: 'http', name: 'web', localPort: old.port, ...spec });
    await expect(tunnel.retarget(target)).rejects.toThrow(words);
    expect(tunnel.localPort).toBe(old.port);
    expect(registrations()).toHaveLength(1);
  });
});

describe('opening a tunnel', () => {
  it('with the endpoint of a closed tunnel asks for it again; find() returns open tunnels only', async () => {
    const before = await client.open({ protocol: 'tcp', name: 'db', localPort: old.port });
    expect(client.find('db')).toBe(before);
    await before.close();
    expect(client.find('db')).toBeUndefined();
    const after = await client.open(
      { protocol: 'tcp', name: 'db', localPort: old.port, healthCheck: { type: 'tcp' } },
      { endpointOf: before },
    );
    expect(registrations()[1]).toMatchObject({ preferred_port: before.assignedPort });
    expect(registrations()[1]?.tunnel_id).toBeUndefined();
    expect(after.assignedPort).toBe(before.assignedPort);
  });
});
