import { readFileSync } from 'node:fs';
import { Fault } from '@tunnel/errors';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlFixture, startControl, tryPort, WINDOW_MS } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

let clock: FakeClock;
let fixture: ControlFixture;

beforeEach(async () => {
  clock = new FakeClock();
  fixture = await startControl({ clock, tunnelsPerSession: 2 });
});
afterEach(() => fixture.stop());

const enter = (token = 'alice', resume?: { session_id: string; secret: string }) =>
  RawClient.enter(fixture.port, token, resume);

const enterWithTunnel = async () => {
  const { client, welcome } = await enter();
  const tunnel = await client.registered();
  return { client, tunnel, claim: { session_id: welcome.session_id, secret: welcome.resume_secret } };
};

const cut = async (client: RawClient): Promise<void> => {
  client.ws.terminate();
  await eventually(() => expect(fixture.tunnels.size).toBe(0));
};

const isFree = async (port: number): Promise<boolean> => {
  const server = await tryPort(port);
  server?.close();
  return server !== null;
};

describe('a client that is cut off', () => {
  it('loses its tunnel at once, but its port is held', async () => {
    const { client, tunnel } = await enterWithTunnel();
    await cut(client);
    expect(await isFree(tunnel.assigned_port as number)).toBe(true);
    const other = await enter('bob');
    expect(await other.client.refused({ remote_port: tunnel.assigned_port })).toMatchObject({
      code: 'TUNNEL_PORT_IN_USE',
      message: `port ${tunnel.assigned_port} is already in use`,
    });
    expect(fixture.backend.closed).toEqual([]);
  });

  it('can resume its session with the same tunnel id and port, even at its tunnel limit', async () => {
    const { client, tunnel, claim } = await enterWithTunnel();
    await client.registered({ name: 'second' });
    await cut(client);
    await clock.advance(WINDOW_MS - 1000);
    const back = await enter('alice', claim);
    expect(back.welcome).toMatchObject({ resumed: true, session_id: claim.session_id, resume_secret: claim.secret });
    expect(await back.client.registered({ tunnel_id: tunnel.tunnel_id })).toMatchObject({
      tunnel_id: tunnel.tunnel_id,
      assigned_port: tunnel.assigned_port,
    });
    expect((await back.client.refused()).code).toBe('TUNNEL_LIMIT');
    expect(fixture.backend.opened).toHaveLength(2);
  });

  it('gets a new session after 30 s: the port is free and the record closed with the time of the loss', async () => {
    const { client, tunnel, claim } = await enterWithTunnel();
    await clock.advance(5000);
    await client.settle();
    const lostAt = clock.now();
    await cut(client);
    await clock.advance(WINDOW_MS);
    expect(fixture.backend.closed).toMatchObject([{ tunnelId: tunnel.tunnel_id, at: lostAt }]);
    const back = await enter('alice', claim);
    expect(back.welcome.resumed).toBe(false);
    expect(back.welcome.session_id).not.toBe(claim.session_id);
    expect(
      await back.client.registered({ tunnel_id: tunnel.tunnel_id, remote_port: tunnel.assigned_port }),
    ).toMatchObject({
      assigned_port: tunnel.assigned_port,
    });
  });

  it('loses tunnels not registered again within 30 s of its return', async () => {
    const { client, tunnel, claim } = await enterWithTunnel();
    await cut(client);
    const back = await enter('alice', claim);
    for (let n = 0; n < 4; n += 1) {
      await clock.advance(10_000);
      await back.client.settle();
    }
    expect(fixture.backend.closed).toMatchObject([{ tunnelId: tunnel.tunnel_id }]);
    expect(fixture.control.figures.sessions).toBe(1);
  });

  it('gets another port if a program has taken its port meanwhile', async () => {
    const { client, tunnel, claim } = await enterWithTunnel();
    await cut(client);
    const squatter = await tryPort(tunnel.assigned_port as number);
    const back = await enter('alice', claim);
    const again = await back.client.registered({ tunnel_id: tunnel.tunnel_id });
    squatter?.close();
    expect(again.tunnel_id).toBe(tunnel.tunnel_id);
    expect(again.assigned_port).not.toBe(tunnel.assigned_port);
  });
});

describe('a resume', () => {
  it('needs the resume secret', async () => {
    const { client, claim } = await enterWithTunnel();
    await cut(client);
    const { welcome } = await enter('alice', { ...claim, secret: 'guessed' });
    expect(welcome.resumed).toBe(false);
  });

  it('needs a key that is still valid', async () => {
    const { client, claim } = await enterWithTunnel();
    await cut(client);
    fixture.backend.refused.add('alice');
    const back = await RawClient.connect(fixture.port);
    back.auth('alice', claim);
    expect((await back.next('AuthError')).code).toBe('AUTH_TOKEN_INVALID');
  });

  it('works with another key of the same owner, but not with a key of another owner', async () => {
    const { client, claim } = await enterWithTunnel();
    await cut(client);
    expect((await enter('bob', claim)).welcome.resumed).toBe(false);
    expect((await enter('op', claim)).welcome.resumed).toBe(false);
    expect((await enter('alice-2', claim)).welcome.resumed).toBe(true);
  });

  it('replaces an old connection that is still open, without closing the tunnel', async () => {
    const { client, tunnel, claim } = await enterWithTunnel();
    const back = await enter('alice', claim);
    expect(back.welcome.resumed).toBe(true);
    expect(fixture.tunnels.get(tunnel.tunnel_id)).toBeDefined();
    expect(await isFree(tunnel.assigned_port as number)).toBe(false);
    expect((await client.next('Error')).code).toBe('CONTROL_REPLACED');
    expect((await client.closed).code).toBe(4409);
    expect(await back.client.registered({ tunnel_id: tunnel.tunnel_id, name: 'renamed' })).toMatchObject({
      assigned_port: tunnel.assigned_port,
    });
    expect(fixture.tunnels.get(tunnel.tunnel_id)?.name).toBe('renamed');
    expect(fixture.control.figures.sessions).toBe(1);
    expect(fixture.backend.opened).toHaveLength(1);
    expect(fixture.backend.closed).toHaveLength(0);
  });

  it('is needed to share a session: two clients without a resume get separate sessions', async () => {
    const first = await enter();
    const second = await enter();
    expect(second.welcome.session_id).not.toBe(first.welcome.session_id);
    expect(fixture.control.figures.sessions).toBe(2);
  });
});

describe('a client that shuts down', () => {
  it('frees its port at once, and its session cannot be resumed', async () => {
    const { client, tunnel, claim } = await enterWithTunnel();
    client.send({ type: 'ShuttingDown', reason: 'SIGTERM', drain_secs: 10 });
    await client.settle();
    expect(fixture.tunnels.size).toBe(0);
    expect(fixture.backend.closed).toHaveLength(1);
    expect((await client.refused()).code).toBe('TUNNEL_CLOSED');
    client.ws.close();
    const other = await enter('bob');
    await other.client.registered({ remote_port: tunnel.assigned_port });
    expect((await enter('alice', claim)).welcome.resumed).toBe(false);
  });
});

describe('a revocation', () => {
  it('of a key ends its open session with a fatal error, and its lost session', async () => {
    const live = await enterWithTunnel();
    const away = await enterWithTunnel();
    away.client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.size).toBe(1));
    const bob = await enter('bob');
    fixture.backend.revoke({ keyId: 'key-alice', fault: new Fault('AUTH_TOKEN_REVOKED') });
    expect(await live.client.next('Error')).toMatchObject({
      code: 'AUTH_TOKEN_REVOKED',
      fatal: true,
      retryable: false,
    });
    expect((await live.client.closed).code).toBe(4403);
    expect(fixture.backend.closed).toHaveLength(2);
    expect((await enter('alice-2', away.claim)).welcome.resumed).toBe(false);
    await bob.client.settle();
  });

  it('of an account ends every session of the account', async () => {
    const one = await enter('alice');
    const two = await enter('alice-2');
    fixture.backend.revoke({ accountId: 'alice', fault: new Fault('ACCOUNT_SUSPENDED') });
    for (const { client } of [one, two]) expect((await client.closed).code).toBe(4403);
  });
});

describe('the capabilities of a session', () => {
  const vector = (file: string, name: string): Record<string, unknown> => {
    const url = new URL(`../../../../packages/protocol/vectors/${file}`, import.meta.url);
    const entries = JSON.parse(readFileSync(url, 'utf8')) as { name: string; text: string }[];
    return JSON.parse(entries.find((entry) => entry.name === name)?.text ?? '{}') as Record<string, unknown>;
  };
  /** Sends the recorded Auth message with a valid key and returns the AuthOk message. */
  const say = async (port: number, auth: Record<string, unknown>): Promise<Record<string, unknown>> => {
    const client = await RawClient.connect(port);
    client.send({ ...auth, token: 'alice' });
    return { ...(await client.next('AuthOk')) };
  };
  const FIRST = vector('control.json', 'Auth, first start');
  const OFFER = vector('control-capabilities.json', 'Auth, a client with more to offer than version 1');
  const ANSWER = Object.keys(vector('control.json', 'AuthOk, new session'));

  it('are absent for a client of version 1, and its response has only the fields of version 1', async () => {
    expect(Object.keys(await say(fixture.port, FIRST))).toEqual(ANSWER);
    const newer = await startControl({ clock, capabilities: ['example-b', 'example-c'] });
    expect(Object.keys(await say(newer.port, FIRST))).toEqual(ANSWER);
    await newer.stop();
  });

  it('are absent for a newer client if the edge knows none of the offered names', async () => {
    expect(Object.keys(await say(fixture.port, OFFER))).toEqual(ANSWER);
  });

  it('are the names known to both sides, and are negotiated again by a resume', async () => {
    const newer = await startControl({ clock, capabilities: ['example-b', 'example-c'] });
    const welcome = await say(newer.port, OFFER);
    expect(welcome['capabilities']).toEqual(['example-b']);
    const resume = { session_id: welcome['session_id'], secret: welcome['resume_secret'] };
    const again = await say(newer.port, { ...OFFER, capabilities: ['example-c', 'example-b'], resume });
    expect(again).toMatchObject({ resumed: true, capabilities: ['example-b', 'example-c'] });
    const older = await say(newer.port, { ...FIRST, resume });
    expect(older).toMatchObject({ resumed: true });
    expect(older).not.toHaveProperty('capabilities');
    await newer.stop();
  });
});

describe('the computer name of a client', () => {
  const enterAs = async (more: object) => {
    const client = await RawClient.connect(fixture.port);
    client.send({ type: 'Auth', versions: [1], token: 'alice', ...more });
    return client;
  };

  it('is shown with each tunnel and sent to the backend, and a resume can change the name', async () => {
    const client = await enterAs({ client_name: 'laptop' });
    const { session_id, resume_secret: secret } = await client.next('AuthOk');
    const tunnel = await client.registered();
    const told = () => fixture.tunnels.get(tunnel.tunnel_id)?.clientName;
    expect([told(), fixture.backend.asked[0]?.clientName]).toEqual(['laptop', 'laptop']);
    expect(fixture.backend.opened).toMatchObject([{ clientName: 'laptop', publicUrl: tunnel.public_url }]);
    const back = await enterAs({ client_name: 'Büro 2', resume: { session_id, secret } });
    expect((await back.next('AuthOk')).resumed).toBe(true);
    await back.registered({ tunnel_id: tunnel.tunnel_id });
    expect(told()).toBe('Büro 2');
  });

  it('is optional, and an unprintable name is rejected', async () => {
    const old = await enterAs({});
    await old.next('AuthOk');
    const { tunnel_id } = await old.registered();
    expect(fixture.tunnels.get(tunnel_id)?.clientName).toBeUndefined();
    const odd = await enterAs({ client_name: 'a\u001b[2J' });
    expect(await odd.next('Error')).toMatchObject({
      code: 'CONTROL_BAD_FRAME',
      message: expect.stringContaining('client_name: must be 1 to 64 printable characters'),
    });
  });
});
