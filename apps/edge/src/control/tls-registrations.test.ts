// Registrations of tls tunnels over the real control port: addresses, ownership of names, and refusals.
import { showProtocol } from '@tunnel/contract';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlFixture, startControl, WINDOW_MS } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

const HTTPS_PORT = 8443;
const GROUP = { group: 'db', group_key_hash: '1'.repeat(64) };

let clock: FakeClock;
let fixture: ControlFixture;

beforeEach(async () => {
  clock = new FakeClock();
  fixture = await startControl({ clock, ports: 3, tunnelsPerSession: 5, httpsPort: HTTPS_PORT });
});
afterEach(() => fixture.stop());

const enter = async (token = 'alice', resume?: { session_id: string; secret: string }) =>
  RawClient.enter(fixture.port, token, resume, ['tls']);

const tls = (fields: object = {}): object => ({ protocol: 'tls', subdomain: 'db', ...fields });
const web = (fields: object = {}): object => ({ protocol: 'http', subdomain: 'db', ...fields });

describe('a tls tunnel', () => {
  it('gets its hostname and the shared https port, without binding a port', async () => {
    const { client } = await enter();
    const answer = await client.registered(tls({ subdomain: 'DB' }));
    expect(answer).toMatchObject({
      protocol: 'tls',
      label: 'db.edge.test',
      public_url: `tls://db.edge.test:${HTTPS_PORT}`,
      assigned_port: HTTPS_PORT,
      warnings: [],
    });
    const tunnel = fixture.tunnels.at({ kind: 'name', name: 'db' });
    expect(tunnel).toMatchObject({ tunnelId: answer.tunnel_id, protocol: 'tls', http: null });
    expect(fixture.backend.asked).toMatchObject([{ protocol: 'tls', customSubdomain: true }]);
    expect(fixture.backend.opened).toMatchObject([{ label: 'db.edge.test' }]);
    expect(showProtocol('tls')).toBe('tcp');
    expect(client.heard).toEqual([]);
  });

  it('has its name exclusively, whether http or tls came first, single tunnel or group', async () => {
    const { client } = await enter();
    const other = await enter('bob');
    const first = await client.registered(tls());
    const inUse = "subdomain 'db' is already in use";
    for (const fields of [web(), web({ protocol: 'https' }), tls()]) {
      expect((await other.client.refused(fields)).message).toBe(inUse);
    }
    expect((await other.client.refused(web(GROUP))).code).toBe('GROUP_KEY_MISMATCH');
    client.send({ type: 'UnregisterTunnel', request_id: 'r9', tunnel_id: first.tunnel_id });
    await client.next('TunnelUnregistered');
    await other.client.registered(web());
    expect((await client.refused(tls())).message).toBe(inUse);
    expect((await client.refused(tls(GROUP))).code).toBe('GROUP_KEY_MISMATCH');
  });

  it('keeps its name while its client is away', async () => {
    const { client, welcome } = await enter();
    const { tunnel_id } = await client.registered(tls());
    client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.size).toBe(0));
    const other = await enter('bob');
    expect((await other.client.refused(web())).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    await clock.advance(WINDOW_MS - 1000);
    const back = await enter('alice', { session_id: welcome.session_id, secret: welcome.resume_secret });
    expect(await back.client.registered(tls({ tunnel_id }))).toMatchObject({ tunnel_id, label: 'db.edge.test' });
  });

  it('registered with the id of an http tunnel is a new tunnel under the same name', async () => {
    const { client } = await enter();
    const before = await client.registered(web());
    const after = await client.registered(tls({ tunnel_id: before.tunnel_id }));
    expect(after.tunnel_id).not.toBe(before.tunnel_id);
    expect([...fixture.tunnels.values()].map(({ tunnelId }) => tunnelId)).toEqual([after.tunnel_id]);
    expect(fixture.backend.closed).toMatchObject([{ tunnelId: before.tunnel_id }]);
    expect(await client.registered(tls({ tunnel_id: after.tunnel_id }))).toEqual(after);
  });

  it('can have an address policy and PROXY headers, like a tcp tunnel', async () => {
    const { client } = await enter();
    const policy = { login: null, rules: [{ allow_addresses: ['10.0.0.0/8'] }] };
    await client.registered(tls({ policy, proxy_protocol: 'v2' }));
    expect(fixture.tunnels.at({ kind: 'name', name: 'db' })).toMatchObject({ proxyProtocol: 'v2' });
    const http = { login: null, rules: [{ auth: { basic: [{ user: 'a', password_hash: 'x' }] } }] };
    expect((await client.refused(tls({ subdomain: 'two', policy: http }))).code).toBe('POLICY_INVALID');
    expect((await client.refused(tls({ subdomain: 'two', services: ['api'] }))).message).toBe(
      'services are for http tunnels',
    );
  });
});

describe('a tls group', () => {
  it('is joined by name and group key, and no member is told that a port is bound', async () => {
    const first = await enter();
    const second = await enter('bob');
    const member = { protocol: 'tls', ...GROUP, health_check: { type: 'tcp' } };
    const answers = [await first.client.registered(member), await second.client.registered(member)];
    for (const answer of answers) {
      expect(answer).toMatchObject({ label: 'db.edge.test', assigned_port: HTTPS_PORT, warnings: [] });
    }
    await first.client.settle();
    expect([first.client.heard, second.client.heard]).toEqual([[], []]);
    const [group, ...others] = [...fixture.tunnels.groups.values()];
    expect(group).toMatchObject({ protocol: 'tls', name: 'db', label: 'db.edge.test', memberCount: 2 });
    expect(others).toEqual([]);
    const third = await enter('bob');
    expect((await third.client.refused({ ...member, protocol: 'http' })).code).toBe('GROUP_PROTOCOL_MISMATCH');
    expect((await third.client.refused({ ...member, group_key_hash: '2'.repeat(64) })).code).toBe('GROUP_KEY_MISMATCH');
    expect((await third.client.refused(tls())).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
  });

  it('keeps its name while all members are away, and any client with the group key can start it again', async () => {
    const first = await enter();
    const second = await enter('bob');
    const { tunnel_id } = await first.client.registered(tls(GROUP));
    const AT = { kind: 'name', name: 'db' } as const;
    const { names } = fixture.endpoints;
    first.client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.groups.size).toBe(0));
    expect([names.isHeld(AT), names.isHeldForTls(AT)]).toEqual([true, true]);
    expect((await second.client.refused(web())).code).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect((await second.client.refused(tls({ ...GROUP, group_key_hash: '2'.repeat(64) }))).code).toBe(
      'GROUP_KEY_MISMATCH',
    );
    const { session_id, resume_secret: secret } = first.welcome;
    const back = await enter('alice', { session_id, secret });
    await back.client.registered(tls({ ...GROUP, tunnel_id }));
    expect([names.isServed(AT), fixture.tunnels.groups.size]).toEqual([true, 1]);
    // A member of another account can restart the group first.
    back.client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.groups.size).toBe(0));
    const third = await enter('bob');
    await third.client.registered(tls(GROUP));
    third.client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.groups.size).toBe(0));
    await clock.advance(WINDOW_MS);
    expect(names.isHeld(AT)).toBe(false);
    const last = await enter('alice');
    expect((await last.client.registered(web())).label).toBe('db');
  });

  it('frees its name at once when its last member unregisters', async () => {
    const { client } = await enter();
    const { tunnel_id } = await client.registered(tls(GROUP));
    client.send({ type: 'UnregisterTunnel', request_id: 'r9', tunnel_id });
    await client.next('TunnelUnregistered');
    expect(fixture.endpoints.names.isHeld({ kind: 'name', name: 'db' })).toBe(false);
    expect((await client.registered(web())).label).toBe('db');
  });

  it('is refused under the name of an http group', async () => {
    const first = await enter();
    const second = await enter('bob');
    const member = { subdomain: 'db', ...GROUP };
    await first.client.registered({ protocol: 'http', ...member });
    expect((await second.client.refused({ protocol: 'tls', ...member })).code).toBe('GROUP_PROTOCOL_MISMATCH');
  });
});

describe('a refused tls registration', () => {
  it.each([
    ['a tls tunnel without a host', { subdomain: undefined }, 'TUNNEL_DOMAIN_INVALID', 'needs a domain or a subdomain'],
    ['a reserved subdomain', { subdomain: 'Admin' }, 'TUNNEL_SUBDOMAIN_INVALID', 'it is reserved'],
    [
      'a domain and a subdomain',
      { domain: 'db.example.net' },
      'TUNNEL_DOMAIN_INVALID',
      'a domain or a subdomain, not both',
    ],
    [
      'a domain on tcp',
      { protocol: 'tcp', subdomain: undefined, domain: 'db.example.net' },
      'TUNNEL_DOMAIN_INVALID',
      'tcp',
    ],
    [
      'an unencrypted health check',
      { health_check: { type: 'http', path: '/' } },
      'GROUP_FIELDS_INVALID',
      'of type tcp',
    ],
  ])('reports %s', async (_, fields, code, words) => {
    const { client } = await enter();
    const refused = await client.refused(tls(fields));
    expect(refused).toMatchObject({ code, retryable: false });
    expect(refused.message).toContain(words);
  });

  it('reports a client without the tls capability', async () => {
    const { client } = await RawClient.enter(fixture.port, 'alice');
    expect((await client.refused(tls())).code).toBe('TUNNEL_PROTOCOL_UNSUPPORTED');
  });

  it('reports an edge without an https port', async () => {
    await fixture.stop();
    fixture = await startControl({ clock, ports: 3 });
    const { client } = await enter();
    expect(await client.refused(tls())).toMatchObject({
      code: 'TUNNEL_TLS_UNAVAILABLE',
      message: 'tls tunnels need the https port',
      retryable: false,
    });
    await client.registered(web());
  });
});
