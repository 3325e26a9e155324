// Tunnels across reconnects and restarts: repeated requests, kept state, and the close of a client.
import { Fault } from '@tunnel/errors';
import { eventually, FakeClock, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import type { ConnectOptions } from '../options.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import type { StatusEvent } from '../status.ts';

let edge: ScriptedEdge;
let events: StatusEvent[];
const clients: Client[] = [];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  events = [];
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await edge.close();
});

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

const tcp = { protocol: 'tcp', localPort: 5432 } as const;
const seen = (type: StatusEvent['type']): StatusEvent[] => events.filter((event) => event.type === type);

describe('connect', () => {
  it('opens a tunnel with the values that the edge assigned', async () => {
    const tunnel = await (await dial()).open({ ...tcp, name: 'db' });
    expect(tunnel).toMatchObject({ state: 'open', tunnelId: 'tun_1', publicUrl: 'tcp://test:20001', label: '20001' });
    expect(tunnel.counts).toEqual({ connections: 0, open: 0, requests: 0, edgeAnswered: 0, bytesIn: 0, bytesOut: 0 });
    expect(edge.session.all('RegisterTunnel')[0]).toMatchObject({ name: 'db', local_addr: '127.0.0.1:5432' });
    expect(events.map((event) => event.type)).toEqual(['connecting', 'connected', 'tunnel-opened']);
  });

  it('exposes the session with its region, carriers and, one second later, the latency', async () => {
    edge.script.Ping = (message, session) => {
      session.send({ type: 'Pong', id: message.id });
      return true;
    };
    const clock = new FakeClock();
    const client = await dial({ clock });
    const id = seen('connected').map((event) => (event.type === 'connected' ? event.sessionId : ''))[0];
    const unknown = { regionName: null, account: null, plan: null, dashboardUrl: null };
    expect(client.session).toMatchObject({ id, regionId: 'test', ...unknown });
    await clock.advance(1000);
    await eventually(() => expect(client.session?.latencyMs).toEqual(expect.any(Number)));
    await eventually(() => expect(client.session?.carriers).toBeGreaterThan(0));
    await client.close();
    expect(client.session).toBeNull();
  });

  it('exposes account, plan, region name and dashboard URL when the edge sends them', async () => {
    const pages = 'https://tunnels.example/app';
    edge.shown = {
      account: 'ada@example.com',
      plan: 'free',
      region: { id: 'test', name: 'Test' },
      dashboard_url: pages,
    };
    const client = await dial();
    const known = { regionName: 'Test', account: 'ada@example.com', plan: 'free', dashboardUrl: pages };
    expect(client.session).toMatchObject(known);
  });

  it('fails at once, without a retry, when the edge rejects the key', async () => {
    edge.script.Auth = (_message, session) => {
      session.send({ type: 'AuthError', code: 'AUTH_TOKEN_INVALID', message: 'no such key', retryable: false });
      return true;
    };
    const failed: unknown = await dial().catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(Fault);
    expect(failed).toMatchObject({ code: 'AUTH_TOKEN_INVALID', message: 'no such key' });
    expect(edge.sessions).toHaveLength(1);
    expect(seen('closed')).toHaveLength(1);
  });

  it('retries when the edge marks the error as retryable', async () => {
    edge.script.Auth = (_message, session) => {
      if (edge.sessions.length > 2) return false;
      session.send({ type: 'AuthError', code: 'AUTH_BACKEND_AWAY', message: 'later', retryable: true });
      return true;
    };
    await dial();
    expect(edge.sessions).toHaveLength(3);
    expect(seen('reconnecting')).toMatchObject([{ attempt: 1, reason: 'later' }, { attempt: 2 }]);
  });
});

describe('a lost connection', () => {
  it('is resumed with the session id, its secret and the tunnel ids', async () => {
    const client = await dial();
    const tunnel = await client.open(tcp);
    edge.script.Auth = (_message, session) => {
      edge.welcome(session, true);
      return true;
    };
    edge.session.cut();
    await eventually(() => expect(seen('reconnected')).toEqual([{ type: 'reconnected', resumed: true }]));
    expect(edge.session.all('Auth')[0]?.resume).toEqual({ session_id: 'ses_1', secret: 'secret-of-ses_1' });
    expect(edge.session.all('RegisterTunnel')[0]).toMatchObject({ tunnel_id: 'tun_1', preferred_port: 20_001 });
    expect(tunnel).toMatchObject({ state: 'open', assignedPort: 20_001 });
    expect(client.state).toBe('connected');
  });

  it('asks for the previous port when the session is unknown, and reports a different port', async () => {
    const tunnel = await (await dial()).open(tcp);
    edge.script.RegisterTunnel = (message, session) => {
      edge.registered(session, { ...message, preferred_port: 20_099 });
      return true;
    };
    edge.session.cut();
    await eventually(() => expect(seen('reconnected')).toEqual([{ type: 'reconnected', resumed: false }]));
    const asked = edge.session.all('RegisterTunnel')[0];
    expect(asked).toMatchObject({ preferred_port: 20_001 });
    expect(asked?.tunnel_id).toBeUndefined();
    expect(seen('tunnel-moved')).toMatchObject([{ previousUrl: 'tcp://test:20001' }]);
    expect(tunnel.assignedPort).toBe(20_099);
  });

  it('closes the old carriers once no stream uses them', async () => {
    await (await dial()).open(tcp);
    const before = edge.session;
    await eventually(() => expect(before.mux.liveCarriers).toBe(2));
    before.cut();
    await eventually(() => expect(seen('reconnected')).toHaveLength(1));
    await eventually(() => expect(before.mux.openCarriers).toBe(0));
    expect(edge.session.mux.liveCarriers).toBeGreaterThan(0);
  });

  it('is not retried when the edge revoked the key', async () => {
    const client = await dial();
    edge.session.send({ type: 'Error', code: 'AUTH_TOKEN_REVOKED', message: 'the key was revoked', fatal: true });
    expect(await client.closed).toMatchObject({ code: 'AUTH_TOKEN_REVOKED' });
    expect(edge.sessions).toHaveLength(1);
  });

  it('ends the client when another connection took over the session', async () => {
    const client = await dial();
    edge.session.close(4409);
    expect(await client.closed).toMatchObject({ code: 'CONTROL_REPLACED' });
  });

  it('is planned when the edge drains: the client reconnects and its tunnels stay open', async () => {
    const client = await dial();
    await client.open(tcp);
    edge.session.send({ type: 'ShuttingDown', reason: 'restart', drain_secs: 30 });
    await eventually(() => expect(seen('reconnected')).toHaveLength(1));
    expect(seen('reconnecting')).toMatchObject([{ planned: true, reason: 'the edge is shutting down' }]);
    expect(client.tunnels).toMatchObject([{ state: 'open', assignedPort: 20_001 }]);
  });
});

describe('a refused tunnel', () => {
  const inUse = (requestId: string) =>
    ({
      type: 'TunnelError',
      request_id: requestId,
      code: 'TUNNEL_PORT_IN_USE',
      message: 'port 20005 is already in use',
      retryable: true,
    }) as const;

  it('fails with the error of the edge and no retry at the first start', async () => {
    edge.script.RegisterTunnel = (message, session) => {
      session.send(inUse(message.request_id));
      return true;
    };
    const client = await dial();
    await expect(client.open({ ...tcp, remotePort: 20_005 })).rejects.toThrow('port 20005 is already in use');
    expect(seen('tunnel-error')).toMatchObject([{ final: true }]);
    expect(client.tunnels).toEqual([]);
    expect(edge.session.all('RegisterTunnel')).toHaveLength(1);
  });

  it('is requested again after a reconnect until the edge accepts', async () => {
    const tunnel = await (await dial()).open({ ...tcp, remotePort: 20_005 });
    let refusals = 0;
    edge.script.RegisterTunnel = (message, session) => {
      refusals += 1;
      if (refusals > 3) return false;
      session.send(inUse(message.request_id));
      return true;
    };
    edge.session.cut();
    await eventually(() => expect(refusals).toBe(4));
    await eventually(() => expect(tunnel.state).toBe('open'));
    expect(seen('tunnel-error')).toMatchObject([{ final: false }, { final: false }, { final: false }]);
  });

  it('stays closed after a reconnect when the edge closed the open tunnel', async () => {
    const client = await dial();
    const tunnel = await client.open(tcp);
    edge.session.send({
      type: 'TunnelError',
      tunnel_id: tunnel.tunnelId,
      code: 'TUNNEL_CLOSED_BY_OPERATOR',
      message: 'the tunnel was closed through the edge API',
      retryable: false,
    });
    await eventually(() => expect(tunnel.state).toBe('closed'));
    edge.session.cut();
    await eventually(() => expect(seen('reconnected')).toHaveLength(1));
    expect(edge.session.all('RegisterTunnel')).toEqual([]);
  });
});

describe('lost carriers', () => {
  it('are dialed again with fresh tokens in the same session', async () => {
    await dial();
    const { session } = edge;
    await eventually(() => expect(session.mux.liveCarriers).toBe(2));
    session.mux.close({ code: 'carrier-lost', text: 'cut by the test' });
    await eventually(() => expect(session.all('RequestCarriers').length).toBeGreaterThanOrEqual(2));
    expect(edge.sessions).toHaveLength(1);
  });
});

describe('close', () => {
  it('unregisters the tunnels, announces the shutdown, and rejects new tunnels', async () => {
    const client = await dial();
    await client.open(tcp);
    const { session } = edge;
    await client.close();
    expect(session.received.map((message) => message.type).slice(-2)).toEqual(['UnregisterTunnel', 'ShuttingDown']);
    expect(events.map((event) => event.type).slice(-2)).toEqual(['closing', 'closed']);
    await expect(client.open(tcp)).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
  });

  it('of one tunnel waits for the edge and leaves other tunnels open', async () => {
    const client = await dial();
    const [first, second] = await Promise.all([client.open(tcp), client.open({ ...tcp, name: 'other' })]);
    await first.close();
    expect(edge.session.all('UnregisterTunnel')).toMatchObject([{ tunnel_id: first.tunnelId }]);
    expect(client.tunnels).toEqual([second]);
  });
});

const http = { protocol: 'http', localPort: 3000 } as const;
const inUse = (requestId: string) =>
  ({
    type: 'TunnelError',
    request_id: requestId,
    code: 'TUNNEL_SUBDOMAIN_IN_USE',
    message: "subdomain 'web' is already in use",
    retryable: true,
  }) as const;

describe('an http tunnel', () => {
  it('gets a name instead of a port', async () => {
    const tunnel = await (await dial()).open({ ...http, subdomain: 'web', hostHeader: 'rewrite', capture: false });
    expect(tunnel).toMatchObject({ name: 'http-3000', label: 'web', publicUrl: 'http://web.test:8000' });
    expect(tunnel.assignedPort).toBeNull();
    expect(edge.session.all('RegisterTunnel')[0]).toMatchObject({
      protocol: 'http',
      local_addr: '127.0.0.1:3000',
      subdomain: 'web',
      host_header: 'rewrite',
      local_protocol: 'http1',
      capture: false,
    });
  });

  it('resumes with its tunnel id and prefers the assigned name', async () => {
    await (await dial()).open(http);
    edge.script.Auth = (_message, session) => {
      edge.welcome(session, true);
      return true;
    };
    edge.session.cut();
    await eventually(() => expect(seen('reconnected')).toEqual([{ type: 'reconnected', resumed: true }]));
    expect(edge.session.all('RegisterTunnel')[0]).toMatchObject({ tunnel_id: 'tun_1', preferred_subdomain: 'name-1' });
    expect(seen('tunnel-moved')).toEqual([]);
  });

  it('prefers its previous name when its session has expired, and reports a different name', async () => {
    const tunnel = await (await dial()).open(http);
    edge.script.RegisterTunnel = (message, session) => {
      edge.registered(session, { ...message, preferred_subdomain: 'other' });
      return true;
    };
    edge.session.cut();
    await eventually(() => expect(seen('reconnected')).toEqual([{ type: 'reconnected', resumed: false }]));
    const asked = edge.session.all('RegisterTunnel')[0];
    expect(asked).toMatchObject({ preferred_subdomain: 'name-1' });
    expect([asked?.tunnel_id, asked?.subdomain]).toEqual([undefined, undefined]);
    expect(seen('tunnel-moved')).toMatchObject([{ previousUrl: 'http://name-1.test:8000' }]);
    expect(tunnel.label).toBe('other');
  });

  it('asks for the same name when the client restarts after a kill', async () => {
    const home = await temporaryDirectory();
    const options = { stateDir: home.path, stateKey: 'web' };
    const killed = await dial(options);
    await killed.open(http);
    // The killed client's slot stays locked by this process, but the saved state is the same as after a kill.
    edge.session.send({ type: 'Error', code: 'CONTROL_REPLACED', message: 'gone', fatal: true });
    await killed.closed;
    await (await dial(options)).open(http);
    expect(edge.session.all('Auth')[0]?.resume).toEqual({ session_id: 'ses_1', secret: 'secret-of-ses_1' });
    expect(edge.session.all('RegisterTunnel')[0]).toMatchObject({ preferred_subdomain: 'name-1' });
    await home.close();
  });

  it('fails at the first start when its name is in use, with the error of the edge', async () => {
    edge.script.RegisterTunnel = (message, session) => {
      session.send(inUse(message.request_id));
      return true;
    };
    const client = await dial();
    await expect(client.open({ ...http, subdomain: 'web' })).rejects.toThrow("subdomain 'web' is already in use");
    expect(seen('tunnel-error')).toMatchObject([{ final: true }]);
    expect(edge.session.all('RegisterTunnel')).toHaveLength(1);
  });

  it('requests its name again after a reconnect until the name is free', async () => {
    const tunnel = await (await dial()).open({ ...http, subdomain: 'web' });
    let refusals = 0;
    edge.script.RegisterTunnel = (message, session) => {
      refusals += 1;
      if (refusals > 3) return false;
      session.send(inUse(message.request_id));
      return true;
    };
    edge.session.cut();
    await eventually(() => expect(refusals).toBe(4));
    await eventually(() => expect(tunnel.state).toBe('open'));
    expect(edge.session.all('RegisterTunnel').every(({ subdomain }) => subdomain === 'web')).toBe(true);
    expect(seen('tunnel-error')).toMatchObject([{ final: false }, { final: false }, { final: false }]);
  });

  it('with invalid options is rejected before the edge gets a request', async () => {
    const client = await dial();
    await expect(client.open({ ...http, hostHeader: 'a b' })).rejects.toMatchObject({ code: 'CLIENT_USAGE' });
    expect(edge.session.all('RegisterTunnel')).toEqual([]);
  });
});
