// Registrations on custom domains over the real control port: URLs, admission, changes of ownership, and the end of a tunnel.
import { Fault } from '@tunnel/errors';
import { eventually, FakeClock, RecordingReader } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { UpstreamStream } from '../upstream/upstream.ts';
import { type ControlFixture, startControl, WINDOW_MS } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';
import { RawPeer } from './raw-peers.fixture.ts';

const HTTPS_PORT = 8443;
const DOMAIN = 'shop.example.org';
const GROUP = { group: 'pool', group_key_hash: '1'.repeat(64) };
const AT_DOMAIN = { kind: 'domain', name: DOMAIN } as const;

let clock: FakeClock;
let fixture: ControlFixture;

beforeEach(async () => {
  clock = new FakeClock();
  fixture = await startControl({ clock, ports: 3, tunnelsPerSession: 5, httpsPort: HTTPS_PORT });
});
afterEach(() => fixture.stop());

const enter = async (token = 'alice', resume?: { session_id: string; secret: string }) =>
  RawClient.enter(fixture.port, token, resume, ['tls']);

const web = (fields: object = {}): object => ({ protocol: 'http', domain: DOMAIN, ...fields });
const tls = (fields: object = {}): object => web({ protocol: 'tls', ...fields });

describe('a tunnel on a custom domain', () => {
  it('gets a URL with the domain, by http and with a warning until the domain has a certificate', async () => {
    const { client } = await enter();
    expect(await client.registered(web({ domain: 'Shop.Example.ORG.' }))).toMatchObject({
      protocol: 'http',
      label: DOMAIN,
      public_url: 'http://shop.example.org:8000',
      warnings: ['no certificate for shop.example.org yet'],
    });
    expect(fixture.backend.asked).toMatchObject([{ domain: DOMAIN, endpoint: null, customSubdomain: false }]);
    expect(fixture.backend.opened).toMatchObject([{ label: DOMAIN, publicUrl: 'http://shop.example.org:8000' }]);
    expect(fixture.tunnels.at(AT_DOMAIN)).toMatchObject({ label: DOMAIN });
    expect(fixture.tunnels.at({ kind: 'name', name: DOMAIN })).toBeUndefined();
    expect(await client.registered(web({ domain: '*.example.org' }))).toMatchObject({
      label: '*.example.org',
      public_url: 'http://*.example.org:8000',
    });
    expect(await client.registered(tls({ domain: 'db.example.org' }))).toMatchObject({
      label: 'db.example.org',
      public_url: `tls://db.example.org:${HTTPS_PORT}`,
      assigned_port: HTTPS_PORT,
    });
  });

  it('is refused with the backend’s error if the domain is not verified for the account', async () => {
    fixture.backend.onAsked = async ({ domain }) => new Fault('TUNNEL_DOMAIN_UNVERIFIED', { domain: domain ?? '' });
    const { client } = await enter();
    for (const fields of [web(), web({ protocol: 'https' }), tls(), web(GROUP), tls(GROUP)]) {
      expect(await client.refused(fields)).toMatchObject({
        code: 'TUNNEL_DOMAIN_UNVERIFIED',
        message: "domain 'shop.example.org' is not verified for this account",
        retryable: false,
      });
    }
    expect(fixture.backend.sought).toHaveLength(5);
  });

  it.each([
    [{ domain: 'localhost' }, "domain 'localhost' is not valid: a domain needs at least two labels"],
    [{ domain: 'web.edge.test' }, "domain 'web.edge.test' is not valid: names of edge.test belong to this server"],
    [{ subdomain: 'shop' }, 'a tunnel can have a domain or a subdomain, not both'],
    [{ protocol: 'tcp' }, 'domains are for http, https and tls tunnels, not for tcp'],
  ])('is refused for an invalid domain or protocol: %j', async (fields, words) => {
    const { client } = await enter();
    const refused = await client.refused(web(fields));
    expect(refused).toMatchObject({ code: 'TUNNEL_DOMAIN_INVALID', retryable: false });
    expect(refused.message).toContain(words);
    expect(fixture.backend.asked).toEqual([]);
  });

  it('has its domain exclusively, whether http or tls came first, single tunnel or group', async () => {
    const { client } = await enter();
    const other = await enter('bob');
    const first = await client.registered(tls());
    for (const fields of [web(), web({ protocol: 'https' }), tls()]) {
      expect(await other.client.refused(fields)).toMatchObject({
        code: 'TUNNEL_DOMAIN_IN_USE',
        message: "domain 'shop.example.org' is already in use",
        retryable: true,
      });
    }
    expect((await other.client.refused(web(GROUP))).code).toBe('GROUP_KEY_MISMATCH');
    client.send({ type: 'UnregisterTunnel', request_id: 'r9', tunnel_id: first.tunnel_id });
    await client.next('TunnelUnregistered');
    await other.client.registered(web());
    expect((await client.refused(tls())).code).toBe('TUNNEL_DOMAIN_IN_USE');
  });

  it('keeps its domain while its client is away, and resumes without another check', async () => {
    const { client, welcome } = await enter();
    const { tunnel_id } = await client.registered(web());
    client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.size).toBe(0));
    const other = await enter('bob');
    expect((await other.client.refused(web())).code).toBe('TUNNEL_DOMAIN_IN_USE');
    await clock.advance(WINDOW_MS - 1000);
    const back = await enter('alice', { session_id: welcome.session_id, secret: welcome.resume_secret });
    expect(await back.client.registered(web({ tunnel_id }))).toMatchObject({ tunnel_id, label: DOMAIN });
    expect(fixture.backend.asked.map(({ owner }) => owner)).toMatchObject([
      { accountId: 'alice' },
      { accountId: 'bob' },
    ]);
  });

  it('gives its domain back if its client does not return', async () => {
    const { client } = await enter();
    await client.registered(tls());
    client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.size).toBe(0));
    await clock.advance(WINDOW_MS + 1000);
    const other = await enter('bob');
    await other.client.registered(web());
  });
});

describe('a group on a custom domain', () => {
  it('is joined with the group key, regardless of the account', async () => {
    const first = await enter();
    const second = await enter('bob');
    for (const { client } of [first, second]) {
      expect(await client.registered(web(GROUP))).toMatchObject({ label: DOMAIN });
    }
    const [group, ...others] = [...fixture.tunnels.groups.values()];
    expect(group).toMatchObject({ protocol: 'http', name: 'pool', label: DOMAIN, memberCount: 2, endpoint: AT_DOMAIN });
    expect(others).toEqual([]);
    expect(fixture.backend.asked.map(({ domain }) => domain)).toEqual([DOMAIN, null]);
    const third = await enter('bob');
    expect((await third.client.refused(web({ ...GROUP, group_key_hash: '2'.repeat(64) }))).code).toBe(
      'GROUP_KEY_MISMATCH',
    );
    expect((await third.client.refused(tls(GROUP))).code).toBe('GROUP_PROTOCOL_MISMATCH');
    expect((await third.client.refused(web())).code).toBe('TUNNEL_DOMAIN_IN_USE');
  });
});

describe('a domain with a new owner', () => {
  const closed = { code: 'TUNNEL_DOMAIN_UNVERIFIED', retryable: false };

  it('closes tunnels of other accounts with a permanent error, and leaves other tunnels open', async () => {
    const { client } = await enter();
    const { tunnel_id } = await client.registered(web());
    const stays = await client.registered(web({ domain: 'other.example.org' }));
    fixture.backend.changeDomains(new Map([[DOMAIN, 'bob']]));
    expect(await client.next('TunnelError')).toMatchObject({ tunnel_id, ...closed });
    expect([...fixture.tunnels.values()].map(({ tunnelId }) => tunnelId)).toEqual([stays.tunnel_id]);
    const bob = await enter('bob');
    await bob.client.registered(web());
    fixture.backend.changeDomains(new Map([[DOMAIN, 'bob']]));
    expect(fixture.tunnels.at(AT_DOMAIN)).toMatchObject({ owner: { accountId: 'bob' } });
    fixture.backend.changeDomains(new Map([[DOMAIN, null]]));
    expect(await bob.client.next('TunnelError')).toMatchObject(closed);
    expect(fixture.tunnels.at(AT_DOMAIN)).toBeUndefined();
  });

  it('resets open connections to its tunnel, but no other connections of the same client', async () => {
    const peer = await RawPeer.enter(fixture.port, 'alice');
    const removed = await peer.client.registered(web());
    const other = await peer.client.registered(web({ domain: 'other.example.org' }));
    const open = async (tunnelId: string) => {
      const opening = new Promise<UpstreamStream>((resolve, reject) => {
        const answer = { onOpened: resolve, onRefused: () => reject(new Error('refused')), abandon: reject };
        fixture.tunnels.get(tunnelId)?.upstream.open({ tunnelId, visitor: '192.0.2.1:1' }, answer);
      });
      const { stream } = await peer.taken();
      stream.accept();
      return { near: new RecordingReader(await opening), far: new RecordingReader(stream) };
    };
    const held = await open(removed.tunnel_id);
    const stays = await open(other.tunnel_id);
    fixture.backend.changeDomains(new Map([[DOMAIN, null]]));
    expect(held.near.reset).toMatchObject({ code: 'cancelled' });
    await eventually(() => expect(held.far.reset).toMatchObject({ code: 'cancelled' }));
    expect([stays.near.reset, stays.far.reset]).toEqual([null, null]);
  });

  it('ends the hold for a lost client, so the returning client is checked again and refused', async () => {
    const { client, welcome } = await enter();
    const { tunnel_id } = await client.registered(web());
    const member = await client.registered(web({ domain: 'pool.example.org', ...GROUP }));
    client.ws.terminate();
    await eventually(() => expect(fixture.tunnels.size).toBe(0));
    fixture.backend.changeDomains(
      new Map([
        [DOMAIN, null],
        ['pool.example.org', 'bob'],
      ]),
    );
    const asked = fixture.backend.asked.length;
    fixture.backend.onAsked = async () => new Fault('TUNNEL_DOMAIN_UNVERIFIED', { domain: DOMAIN });
    const back = await enter('alice', { session_id: welcome.session_id, secret: welcome.resume_secret });
    expect(await back.client.refused(web({ tunnel_id }))).toMatchObject(closed);
    const rejoining = web({ domain: 'pool.example.org', tunnel_id: member.tunnel_id, ...GROUP });
    expect(await back.client.refused(rejoining)).toMatchObject(closed);
    expect(fixture.backend.asked).toHaveLength(asked + 2);
  });

  it('closes every member of a group, unless the new owner has a member in the group', async () => {
    const alice = await enter();
    const bob = await enter('bob');
    for (const { client } of [alice, bob]) await client.registered(web(GROUP));
    fixture.backend.changeDomains(new Map([[DOMAIN, 'bob']]));
    expect(fixture.tunnels.size).toBe(2);
    fixture.backend.changeDomains(new Map([[DOMAIN, null]]));
    for (const { client } of [alice, bob]) expect(await client.next('TunnelError')).toMatchObject(closed);
    expect([...fixture.tunnels.groups.values()]).toEqual([]);
  });

  it('can be used by the operator only while no account owns the domain', async () => {
    const { client } = await enter('op');
    await client.registered(web());
    fixture.backend.changeDomains(new Map([[DOMAIN, null]]));
    expect(fixture.tunnels.size).toBe(1);
    fixture.backend.changeDomains(new Map([[DOMAIN, 'bob']]));
    expect(await client.next('TunnelError')).toMatchObject(closed);
  });
});
