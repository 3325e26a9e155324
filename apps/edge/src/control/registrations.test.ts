import { Fault } from '@tunnel/errors';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlFixture, startControl, tryPort } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

let fixture: ControlFixture;
let client: RawClient;

beforeEach(async () => {
  fixture = await startControl({ clock: new FakeClock(), ports: 3, tunnelsPerSession: 4 });
  ({ client } = await RawClient.enter(fixture.port, 'alice'));
});
afterEach(() => fixture.stop());

describe('a registration', () => {
  it('gets the public address once the port is open', async () => {
    const answer = await client.registered({ local_addr: '127.0.0.1:5432' });
    const port = answer.assigned_port as number;
    expect(answer).toMatchObject({
      request_id: 'r1',
      name: 'db',
      protocol: 'tcp',
      label: String(port),
      public_url: `tcp://edge.test:${port}`,
      warnings: [],
    });
    expect(answer.tunnel_id).toMatch(/^tun_\w{20}$/);
    expect(await tryPort(port)).toBeNull();
    expect(fixture.tunnels.at({ kind: 'port', transport: 'tcp', port })).toMatchObject({
      tunnelId: answer.tunnel_id,
      owner: { accountId: 'alice' },
    });
    expect(fixture.backend.opened).toMatchObject([
      { tunnelId: answer.tunnel_id, keyId: 'key-alice', label: String(port) },
    ]);
    expect(client.heard).toEqual([]);
  });

  it('gets the requested port, the preferred port, or any port', async () => {
    const { from, to } = fixture.range;
    expect((await client.registered({ remote_port: to })).assigned_port).toBe(to);
    expect((await client.registered({ preferred_port: to - 1 })).assigned_port).toBe(to - 1);
    expect((await client.registered({ preferred_port: to })).assigned_port).toBe(from);
  });

  it('skips a port held by another program', async () => {
    const squatters = await Promise.all([tryPort(fixture.range.from), tryPort(fixture.range.from + 1)]);
    expect((await client.registered()).assigned_port).toBe(fixture.range.to);
    expect((await client.refused()).code).toBe('TUNNEL_PORTS_EXHAUSTED');
    for (const squatter of squatters) squatter?.close();
  });

  it('of an open tunnel gets the same response again', async () => {
    const first = await client.registered();
    expect(await client.registered({ tunnel_id: first.tunnel_id })).toEqual(first);
    expect(fixture.tunnels.size).toBe(1);
  });

  it('with the id of another account’s tunnel creates a new tunnel', async () => {
    const { tunnel_id } = await client.registered();
    const bob = await RawClient.enter(fixture.port, 'bob');
    const other = await bob.client.registered({ tunnel_id });
    expect(other.tunnel_id).not.toBe(tunnel_id);
    expect(fixture.tunnels.size).toBe(2);
  });

  it('gets a separate port among concurrent registrations', async () => {
    const others = await Promise.all(['op', 'bob', 'alice'].map((token) => RawClient.enter(fixture.port, token)));
    const answers = await Promise.all(others.map((other) => other.client.registered()));
    expect(new Set(answers.map((answer) => answer.assigned_port)).size).toBe(3);
  });
});

describe('a refused registration', () => {
  const cases: [string, object, string][] = [
    ['an invalid name', { name: '' }, 'TUNNEL_NAME_INVALID'],
    ['a protocol that the client did not agree on', { protocol: 'udp' }, 'TUNNEL_PROTOCOL_UNSUPPORTED'],
    ['a Host that is no authority', { protocol: 'http', host_header: '[::1' }, 'TUNNEL_HOST_HEADER_INVALID'],
    ['a port outside of the range', { remote_port: 80 }, 'TUNNEL_PORT_OUT_OF_RANGE'],
  ];
  it.each(cases)('reports %s', async (_, fields, code) => {
    expect(await client.refused(fields)).toMatchObject({ request_id: 'r1', code, retryable: false });
    await client.registered();
  });

  it('reports a port used by a tunnel or by another program', async () => {
    const { assigned_port } = await client.registered();
    expect((await client.refused({ remote_port: assigned_port })).code).toBe('TUNNEL_PORT_IN_USE');
    const squatter = await tryPort(fixture.range.to);
    expect((await client.refused({ remote_port: fixture.range.to })).code).toBe('TUNNEL_PORT_IN_USE');
    squatter?.close();
  });

  it('reports the range when no port is left', async () => {
    for (let n = 0; n < 3; n += 1) await client.registered();
    const { from, to } = fixture.range;
    expect(await client.refused()).toMatchObject({
      code: 'TUNNEL_PORTS_EXHAUSTED',
      message: `no free port left in tcp_port_range ${from}-${to}`,
      retryable: true,
    });
  });

  it('reports a shutdown of the edge, even if the shutdown began while the port was being opened', async () => {
    const listen = fixture.listeners.listen.bind(fixture.listeners);
    let opened = 0;
    fixture.listeners.listen = async (port, account) => {
      fixture.control.drain(5);
      opened = port;
      return listen(port, account);
    };
    for (const request_id of ['under way', 'later']) {
      client.register({}, request_id);
      expect(await client.next('TunnelError')).toMatchObject({
        request_id,
        code: 'EDGE_SHUTTING_DOWN',
        retryable: true,
      });
    }
    expect(fixture.tunnels.size).toBe(0);
    const server = await tryPort(opened);
    expect(server).not.toBeNull();
    server?.close();
  });

  it('reports the limit of tunnels per session', async () => {
    const small = await startControl({ clock: new FakeClock(), tunnelsPerSession: 1 });
    const { client: full } = await RawClient.enter(small.port, 'op');
    await full.registered();
    expect((await full.refused()).message).toBe('tunnel limit of 1 per session reached');
    await small.stop();
  });
});

describe('the end of a tunnel', () => {
  it('by its client frees the port at once', async () => {
    const { tunnel_id, assigned_port } = await client.registered();
    client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id });
    expect(await client.next('TunnelUnregistered')).toMatchObject({ request_id: 'u', tunnel_id });
    expect(fixture.tunnels.size).toBe(0);
    const bob = await RawClient.enter(fixture.port, 'bob');
    await bob.client.registered({ remote_port: assigned_port });
    expect(fixture.backend.closed).toMatchObject([{ tunnelId: tunnel_id }]);
  });

  it('cannot be requested by another client', async () => {
    const { tunnel_id } = await client.registered();
    const bob = await RawClient.enter(fixture.port, 'bob');
    bob.client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id });
    expect(await bob.client.next('TunnelError')).toMatchObject({ request_id: 'u', code: 'TUNNEL_UNKNOWN' });
    expect(fixture.tunnels.size).toBe(1);
  });

  it('through the REST API is reported to the client, and the port is not held', async () => {
    const { tunnel_id, assigned_port } = await client.registered();
    const fault = new Fault('TUNNEL_CLOSED_BY_OPERATOR');
    expect(fixture.control.closeTunnel(tunnel_id, fault)).toBe(true);
    expect(fixture.control.closeTunnel(tunnel_id, fault)).toBe(false);
    const told = await client.next('TunnelError');
    expect(told).toMatchObject({ tunnel_id, code: 'TUNNEL_CLOSED_BY_OPERATOR', retryable: false });
    expect(told.request_id).toBeUndefined();
    await eventually(async () => {
      const server = await tryPort(assigned_port as number);
      expect(server).not.toBeNull();
      server?.close();
    });
    await client.registered({ remote_port: assigned_port });
  });

  it('follows the loss of its client before the response', async () => {
    client.register();
    client.ws.terminate();
    await eventually(() => expect(fixture.control.figures.sessions).toBe(0));
    expect(fixture.tunnels.size).toBe(0);
  });
});

describe('admission by the backend', () => {
  it('is requested with the wanted endpoint before a port is opened', async () => {
    let portsAtQuestion: unknown;
    fixture.backend.onAsked = async () => {
      portsAtQuestion = await tryPort(fixture.range.from).then((server) => server?.close() !== undefined);
      return null;
    };
    const { tunnel_id } = await client.registered();
    expect(portsAtQuestion).toBe(true);
    expect(fixture.backend.asked).toMatchObject([
      { tunnelId: tunnel_id, name: 'db', protocol: 'tcp', keyId: 'key-alice', customSubdomain: false },
    ]);
    await client.registered({ protocol: 'http', subdomain: 'shop' });
    await client.registered({ protocol: 'http', preferred_subdomain: 'shop-2' });
    await client.registered({ protocol: 'http', group: 'pool', group_key_hash: 'a'.repeat(64) });
    expect(fixture.backend.asked.map(({ customSubdomain }) => customSubdomain)).toEqual([false, true, false, true]);
    expect(fixture.backend.sought).toHaveLength(4);
  });

  it('refuses a tunnel with the backend’s message, and no tunnel is opened', async () => {
    fixture.backend.onAsked = async () => new Fault('TUNNEL_PLAN_LIMIT', { limit: 7 });
    const { from } = fixture.range;
    const refusal = await client.refused({ remote_port: from });
    expect(refusal).toMatchObject({
      code: 'TUNNEL_PLAN_LIMIT',
      message: 'tunnel limit of 7 reached',
      retryable: false,
    });
    const free = await tryPort(from);
    expect(free).not.toBeNull();
    free?.close();
    expect([fixture.tunnels.size, fixture.backend.opened]).toEqual([0, []]);
  });

  it('is reported as ended, even if no port was found', async () => {
    const { from } = fixture.range;
    await client.registered({ remote_port: from });
    await client.refused({ remote_port: from });
    const [first, second] = fixture.backend.asked;
    expect(fixture.backend.sought).toEqual([first?.tunnelId, second?.tunnelId]);
    expect(fixture.backend.opened.map(({ tunnelId }) => tunnelId)).toEqual([first?.tunnelId]);
  });

  it('is not requested again for a returning client', async () => {
    const { client: carol, welcome } = await RawClient.enter(fixture.port, 'bob');
    const { tunnel_id } = await carol.registered();
    carol.ws.terminate();
    await carol.closed;
    const resume = { session_id: welcome.session_id, secret: welcome.resume_secret };
    const { client: again } = await RawClient.enter(fixture.port, 'bob', resume);
    expect((await again.registered({ tunnel_id })).tunnel_id).toBe(tunnel_id);
    expect(fixture.backend.asked).toHaveLength(1);
  });

  it('opens no tunnel if the response arrives after the client has left', async () => {
    let answer: (fault: Fault | null) => void = () => {};
    fixture.backend.onAsked = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    client.register();
    await eventually(() => expect(fixture.backend.asked).toHaveLength(1));
    client.ws.terminate();
    await eventually(() => expect(fixture.control.figures.sessions).toBe(0));
    answer(null);
    await eventually(() => expect(fixture.backend.sought).toHaveLength(1));
    expect([fixture.tunnels.size, fixture.backend.opened]).toEqual([0, []]);
    const free = await tryPort(fixture.range.from);
    expect(free).not.toBeNull();
    free?.close();
  });
});
