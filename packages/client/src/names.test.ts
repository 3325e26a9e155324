// Names of http tunnels across connections and restarts.
import { eventually, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, connect } from './client.ts';
import type { ConnectOptions } from './options.ts';
import { ScriptedEdge } from './scripted-edge.fixture.ts';
import type { StatusEvent } from './status.ts';

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

/** Below the range of real chance: every retry comes at once. */
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

const http = { protocol: 'http', localPort: 3000 } as const;
const seen = (type: StatusEvent['type']): StatusEvent[] => events.filter((event) => event.type === type);
const inUse = (requestId: string) =>
  ({
    type: 'TunnelError',
    request_id: requestId,
    code: 'TUNNEL_SUBDOMAIN_IN_USE',
    message: "subdomain 'web' is already in use",
    retryable: true,
  }) as const;

describe('an http tunnel', () => {
  it('has a name instead of a port', async () => {
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

  it('resumes with its id, and wishes for the name that the edge chose', async () => {
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

  it('wishes for its name when it returns too late, and tells when it got another', async () => {
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

  it('asks for the same name after a restart that followed a kill', async () => {
    const home = await temporaryDirectory();
    const options = { stateDir: home.path, stateKey: 'web' };
    const killed = await dial(options);
    await killed.open(http);
    // Its slot stays held in this process: the state is what a kill leaves behind.
    edge.session.send({ type: 'Error', code: 'CONTROL_REPLACED', message: 'gone', fatal: true });
    await killed.closed;
    await (await dial(options)).open(http);
    expect(edge.session.all('Auth')[0]?.resume).toEqual({ session_id: 'ses_1', secret: 'secret-of-ses_1' });
    expect(edge.session.all('RegisterTunnel')[0]).toMatchObject({ preferred_subdomain: 'name-1' });
    await home.close();
  });

  it('whose name is taken is refused for good at the first start, in the words of the edge', async () => {
    edge.script.RegisterTunnel = (message, session) => {
      session.send(inUse(message.request_id));
      return true;
    };
    const client = await dial();
    await expect(client.open({ ...http, subdomain: 'web' })).rejects.toThrow("subdomain 'web' is already in use");
    expect(seen('tunnel-error')).toMatchObject([{ final: true }]);
    expect(edge.session.all('RegisterTunnel')).toHaveLength(1);
  });

  it('whose name is taken after a reconnection asks again until it is free', async () => {
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

  it('that cannot work is refused before anything is asked', async () => {
    const client = await dial();
    await expect(client.open({ ...http, hostHeader: 'a b' })).rejects.toMatchObject({ code: 'CLIENT_USAGE' });
    expect(edge.session.all('RegisterTunnel')).toEqual([]);
  });
});
