// Publishers and subscribers on their control connections, over real sockets: registrations, all responses to ConnectPeer, notices about
// the start and end of a join, and joins after a resume.
import { Fault } from '@tunnel/errors';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlFixture, type ControlFixtureOptions, startControl, WINDOW_MS } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';
import { openRelay, P2P_TUNNEL, RawPeer, SECRET_HASH, WRONG_HASH } from './raw-peers.fixture.ts';

let clock: FakeClock;
let fixture: ControlFixture;
beforeEach(async () => {
  clock = new FakeClock();
  fixture = await startControl({ clock, peersPerTunnel: 2 });
});
afterEach(() => fixture.stop());

const restart = async (options: Partial<ControlFixtureOptions>): Promise<void> => {
  await fixture.stop();
  fixture = await startControl({ clock, ...options });
};

const enter = (token = 'alice', resume?: RawPeer['resume']): Promise<RawPeer> =>
  RawPeer.enter(fixture.port, token, resume);

const revoked = new Fault('AUTH_TOKEN_INVALID');
const NOT_FOUND = "P2P_NOT_FOUND: p2p 'office-db' was not found, or the secret does not match";
const AWAY = "P2P_AWAY: the publisher of 'office-db' is not connected right now";

const lose = async (peer: RawPeer): Promise<void> => {
  const { sessions } = fixture.control.figures;
  peer.kill();
  await peer.client.closed;
  while (fixture.control.figures.sessions >= sessions) await new Promise(setImmediate);
};

/** Advances the clock in steps of one second, so that the sessions’ timer runs. The staying peers send a sign of life every 10 s. */
const pass = async (ms: number, ...staying: RawPeer[]): Promise<void> => {
  for (let passed = 0; passed < ms; passed += 1000) {
    if (passed % 10_000 === 0) await Promise.all(staying.map((peer) => peer.isAlive()));
    await clock.advance(1000);
  }
};

describe('a p2p registration', () => {
  it('gets its name as label and address, without a port', async () => {
    const publisher = await enter();
    const answer = await publisher.publish({ p2p_name: 'Office-DB' });
    expect(answer).toMatchObject({ protocol: 'p2p', label: 'office-db', public_url: 'p2p://office-db' });
    expect(answer.assigned_port).toBeUndefined();
    expect(fixture.backend.opened).toMatchObject([{ protocol: 'p2p', label: 'office-db' }]);
  });

  it('has its name exclusively, even while its client is away, until the resume window ends', async () => {
    const publisher = await enter();
    const { tunnel_id } = await publisher.publish();
    const other = await enter('alice-2');
    const inUse = {
      code: 'TUNNEL_P2P_NAME_IN_USE',
      message: "p2p name 'office-db' is already in use",
      retryable: true,
    };
    expect(await other.client.refused(P2P_TUNNEL)).toMatchObject(inUse);
    await lose(publisher);
    expect(await other.client.refused(P2P_TUNNEL)).toMatchObject(inUse);
    const back = await enter('alice', publisher.resume);
    expect((await back.publish({ tunnel_id })).tunnel_id).toBe(tunnel_id);
    await lose(back);
    await pass(WINDOW_MS, other);
    expect((await other.publish()).label).toBe('office-db');
    expect(fixture.backend.closed).toHaveLength(1);
  });

  it('of the same name by two accounts creates two tunnels, each for subscribers of its account', async () => {
    const alices = await enter('alice');
    const bobs = await enter('bob');
    const ofAlice = await alices.publish();
    const ofBob = await bobs.publish();
    const answer = { label: 'office-db', public_url: 'p2p://office-db' };
    expect([ofAlice, ofBob]).toMatchObject([answer, answer]);
    expect(ofAlice.tunnel_id).not.toBe(ofBob.tunnel_id);
    for (const [account, publisher, bytes] of [
      ['alice-2', alices, 5],
      ['bob', bobs, 3],
    ] as const) {
      const subscriber = await enter(account);
      const { near, farReads } = await openRelay(subscriber, publisher, await subscriber.connect());
      near.write(Buffer.alloc(bytes), 0, bytes, false);
      await eventually(() => expect(farReads.bytes).toBe(bytes));
    }
    // The name is ambiguous for the operator.
    expect(await (await enter('op')).connect()).toBe(NOT_FOUND);
    expect(fixture.backend.asked.map(({ endpoint }) => endpoint)).toEqual([null, null]);
    expect(fixture.backend.opened).toMatchObject([{ label: 'office-db' }, { label: 'office-db' }]);
  });

  it('open to anyone has its name exclusively across accounts, and the backend is asked about the name', async () => {
    const publisher = await enter('alice');
    const other = await enter('bob');
    const { tunnel_id } = await publisher.publish({ p2p_allow: 'anyone' });
    const inUse = { code: 'TUNNEL_P2P_NAME_IN_USE', message: "p2p name 'office-db' is already in use" };
    expect(await other.client.refused({ ...P2P_TUNNEL, p2p_allow: 'anyone' })).toMatchObject(inUse);
    const asked = { kind: 'p2p', label: 'office-db', choice: 'asked', groupKeyHash: null, joinsGroup: false };
    expect(fixture.backend.asked.map(({ endpoint }) => endpoint)).toEqual([asked]);
    // A tunnel of the subscriber’s account takes precedence over a tunnel open to anyone under the same name.
    const joined = await other.connect();
    expect(fixture.peers.of(tunnel_id).map(({ peer }) => peer.peerId)).toEqual([joined]);
    const own = await other.publish();
    const peerId = await (await enter('bob')).connect();
    expect(fixture.peers.of(own.tunnel_id).map(({ peer }) => peer.peerId)).toEqual([peerId]);
  });

  it('that becomes open to anyone is a new tunnel, because the name may belong to another account', async () => {
    const publisher = await enter('alice');
    const { tunnel_id } = await publisher.publish();
    const back = await enter('alice', publisher.resume);
    const opened = await back.publish({ tunnel_id, p2p_allow: 'anyone' });
    expect(opened.tunnel_id).not.toBe(tunnel_id);
    expect(await (await enter('bob')).connect()).toMatch(/^peer_/);
    expect((await (await enter('alice-2')).publish()).label).toBe('office-db');
  });

  it.each([
    [{ p2p_name: 'a_b' }, /^p2p name 'a_b' is not valid: /],
    [{ p2p_secret_hash: undefined }, /^p2p_secret_hash must be 64 lower-case hex digits$/],
    [{ group: 'g', group_key_hash: 'c'.repeat(64) }, /^groups exist for http and tcp tunnels only$/],
  ])('is refused with %j', async (fields, text) => {
    const { client } = await enter();
    expect((await client.refused({ ...P2P_TUNNEL, ...fields })).message).toMatch(text);
  });

  it('needs the capability and an edge with p2p switched on', async () => {
    const { client } = await RawClient.enter(fixture.port, 'alice', undefined, []);
    expect((await client.refused(P2P_TUNNEL)).code).toBe('TUNNEL_PROTOCOL_UNSUPPORTED');
    await restart({ switchedOff: ['p2p'] });
    const peer = await enter();
    expect((await peer.client.refused(P2P_TUNNEL)).message).toBe('p2p tunnels are switched off on this edge');
    expect(await peer.ask()).toMatchObject({ code: 'TUNNEL_PROTOCOL_OFF', retryable: false });
  });
});

describe('ConnectPeer', () => {
  it('joins the tunnel and tells the publisher the address of the subscriber', async () => {
    const publisher = await enter();
    const subscriber = await enter('alice-2');
    const { tunnel_id } = await publisher.publish();
    const peerId = await subscriber.connect();
    expect(peerId).toMatch(/^peer_/);
    const { client_addr } = fixture.peers.of(tunnel_id).map(({ clientAddr }) => ({ client_addr: clientAddr }))[0] ?? {};
    expect(client_addr).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(await publisher.told('PeerJoined')).toMatchObject({ tunnel_id, peer_id: peerId, client_addr });
    expect(fixture.tunnels.get(tunnel_id)?.counters.requests).toBe(1);
  });

  it('has the same error for an unknown name, a wrong secret and another account', async () => {
    const publisher = await enter();
    const subscriber = await enter();
    const stranger = await enter('bob');
    await publisher.publish();
    expect(await subscriber.connect({ p2p_name: 'nothing' })).toBe(NOT_FOUND.replace('office-db', 'nothing'));
    expect(await subscriber.connect({ p2p_secret_hash: WRONG_HASH, service: 'udp' })).toBe(NOT_FOUND);
    expect(await stranger.connect()).toBe(NOT_FOUND);
    expect(await (await enter('op')).connect()).toMatch(/^peer_/);
    expect(publisher.client.heard.filter(({ type }) => type === 'PeerGone')).toEqual([]);
  });

  it('is open to every valid key if the publisher allows anyone', async () => {
    const publisher = await enter();
    const stranger = await enter('bob');
    await publisher.publish({ p2p_allow: 'anyone' });
    expect(await stranger.connect()).toMatch(/^peer_/);
    expect(await stranger.connect({ p2p_secret_hash: WRONG_HASH })).toBe(NOT_FOUND);
  });

  it('with the right secret tells a wrong service, an absent publisher and too many peers apart', async () => {
    const publisher = await enter();
    const subscriber = await enter();
    await publisher.publish();
    expect(await subscriber.ask({ service: 'udp' })).toMatchObject({
      code: 'P2P_SERVICE_MISMATCH',
      message: "'office-db' is a tcp service",
      retryable: false,
    });
    await subscriber.connect();
    await subscriber.connect();
    expect(await subscriber.connect()).toBe("P2P_PEER_LIMIT: 'office-db' holds its limit of 2 peers");
    await lose(publisher);
    expect(await subscriber.connect()).toBe(AWAY);
  });

  it('is blocked for an account after 60 refusals in a minute', async () => {
    const publisher = await enter();
    const subscriber = await enter();
    const other = await enter('op');
    await publisher.publish();
    for (let n = 0; n < 60; n += 1) {
      expect(await subscriber.connect({ p2p_secret_hash: WRONG_HASH })).toBe(NOT_FOUND);
      // The pause keeps the client below the rate limit for frames.
      await clock.advance(100);
    }
    expect(await subscriber.connect()).toBe('P2P_TOO_MANY_ATTEMPTS: too many attempts; try again in 54 s');
    expect(await other.connect()).toMatch(/^peer_/);
    await pass(54_000, subscriber, publisher);
    expect(await subscriber.connect()).toMatch(/^peer_/);
  });

  it('needs the capability', async () => {
    const subscriber = await RawPeer.enter(fixture.port, 'alice', undefined, []);
    expect(await subscriber.ask()).toMatchObject({ code: 'TUNNEL_PROTOCOL_UNSUPPORTED' });
  });
});

describe('a p2p join', () => {
  let publisher: RawPeer;
  let subscriber: RawPeer;
  let tunnelId: string;
  let peerId: string;
  beforeEach(async () => {
    publisher = await enter('alice');
    subscriber = await enter('alice-2');
    tunnelId = (await publisher.publish()).tunnel_id;
    peerId = await subscriber.connect();
    await publisher.told('PeerJoined');
  });

  const gone = (reason: string) => ({ type: 'PeerGone', tunnel_id: tunnelId, peer_id: peerId, reason });
  const ended = (code: string) => ({ type: 'PeerError', peer_id: peerId, code });

  it('ends when the subscriber disconnects from the peer or shuts down', async () => {
    subscriber.client.send({ type: 'DisconnectPeer', peer_id: peerId });
    expect(await publisher.told('PeerGone')).toEqual(gone('left'));
    peerId = await subscriber.connect();
    subscriber.client.send({ type: 'ShuttingDown', reason: 'enough', drain_secs: 0 });
    expect(await publisher.told('PeerGone')).toEqual(gone('left'));
    expect(fixture.peers.of(tunnelId)).toEqual([]);
  });

  it('can be ended only by its subscriber and reported only by its publisher', async () => {
    publisher.client.send({ type: 'DisconnectPeer', peer_id: peerId });
    const report = { type: 'PeerReport', tunnel_id: tunnelId, peer_id: peerId, path: 'direct', reason: '', rtt_ms: 3 };
    subscriber.client.send({ ...report, direct_bytes: 10 });
    await Promise.all([publisher.client.settle(), subscriber.client.settle()]);
    expect(fixture.peers.of(tunnelId)).toMatchObject([{ path: 'relay', reason: 'punching', directBytes: 0 }]);
    publisher.client.send({ ...report, direct_bytes: 10, attempt: 'direct' });
    publisher.client.send({ ...report, direct_bytes: 11, tunnel_id: 'tun_other' });
    await publisher.client.settle();
    expect(fixture.peers.of(tunnelId)).toMatchObject([{ path: 'direct', reason: '', rttMs: 3, directBytes: 10 }]);
    expect(fixture.peers.counts).toEqual({ direct: 1, relay: 0 });
    expect(fixture.peers.totals.attempts.direct).toBe(1);
  });

  it('survives a lost connection of its subscriber and keeps its id within the resume window', async () => {
    await lose(subscriber);
    await pass(WINDOW_MS - 1000, publisher);
    const back = await enter('alice-2', subscriber.resume);
    expect(await back.connect({ peer_id: peerId })).toBe(peerId);
    expect(fixture.peers.totals.requests).toBe(1);
    await lose(back);
    await pass(WINDOW_MS, publisher);
    expect(await publisher.told('PeerGone')).toEqual(gone('lost'));
  });

  it('is replaced by the next join of a subscriber that crashed and restarted', async () => {
    await restart({ peersPerTunnel: 1 });
    [publisher, subscriber] = [await enter(), await enter('alice-2')];
    tunnelId = (await publisher.publish()).tunnel_id;
    peerId = await subscriber.connect();
    await publisher.told('PeerJoined');
    for (let n = 0; n < 3; n += 1) {
      await lose(subscriber);
      subscriber = await enter('alice-2', subscriber.resume);
      // A restarted process does not know the ids of earlier joins.
      const next = await subscriber.connect();
      expect(next).toMatch(/^peer_/);
      expect(await publisher.told('PeerGone')).toEqual(gone('left'));
      expect(await publisher.told('PeerJoined')).toMatchObject({ peer_id: next });
      expect(fixture.peers.of(tunnelId)).toHaveLength(1);
      peerId = next;
    }
    expect(await (await enter('alice-2')).connect()).toMatch(/^P2P_PEER_LIMIT/);
  });

  it('of another session cannot be taken over with its id', async () => {
    const other = await enter('alice-2');
    expect(await other.connect({ peer_id: peerId })).not.toBe(peerId);
    expect(fixture.peers.of(tunnelId)).toHaveLength(2);
  });

  it('survives a lost connection of its publisher, which gets the joins and departures again', async () => {
    const second = await enter();
    const other = await second.connect();
    await lose(publisher);
    second.client.send({ type: 'DisconnectPeer', peer_id: other });
    await second.client.settle();
    const back = await enter('alice', publisher.resume);
    await back.publish({ tunnel_id: tunnelId });
    expect(await back.told('PeerGone')).toEqual({ ...gone('left'), peer_id: other });
    expect(await back.told('PeerJoined')).toMatchObject({ tunnel_id: tunnelId, peer_id: peerId });
    expect(subscriber.client.heard.filter(({ type }) => type === 'PeerError')).toEqual([]);
    expect(await subscriber.connect({ peer_id: peerId })).toBe(peerId);
  });

  it('ends when its publisher does not return, and is not taken over by the next publisher', async () => {
    await lose(publisher);
    await pass(WINDOW_MS, subscriber);
    expect(await subscriber.told('PeerError')).toMatchObject(ended('P2P_AWAY'));
    const successor = await enter('alice');
    const { tunnel_id } = await successor.publish();
    expect(await subscriber.connect({ peer_id: peerId })).not.toBe(peerId);
    expect(fixture.peers.of(tunnel_id)).toHaveLength(1);
    expect(fixture.peers.of(tunnelId)).toEqual([]);
  });

  it.each<[string, (id: string) => void]>([
    [
      'its publisher unregisters',
      (id) => publisher.client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id: id }),
    ],
    ['its publisher stops', () => publisher.client.send({ type: 'ShuttingDown', reason: 'enough', drain_secs: 0 })],
    ['the key of its publisher is revoked', () => fixture.backend.revoke({ keyId: 'key-alice', fault: revoked })],
    ['the tunnel is closed', (id) => void fixture.control.closeTunnel(id, revoked)],
  ])('ends when %s', async (_, act) => {
    act(tunnelId);
    expect(await subscriber.told('PeerError')).toMatchObject(ended('P2P_NOT_FOUND'));
    expect(await subscriber.connect({ peer_id: peerId })).toBe(NOT_FOUND);
  });

  it('ends when the key of an absent publisher is revoked', async () => {
    await lose(publisher);
    fixture.backend.revoke({ keyId: 'key-alice', fault: revoked });
    expect(await subscriber.told('PeerError')).toMatchObject(ended('P2P_NOT_FOUND'));
  });

  it('ends when the key of its subscriber is revoked', async () => {
    fixture.backend.revoke({ keyId: 'key-alice-2', fault: revoked });
    expect(await publisher.told('PeerGone')).toEqual(gone('revoked'));
    expect(await subscriber.told('PeerError')).toMatchObject(ended('AUTH_TOKEN_INVALID'));
  });

  it('ends when its peer is dismissed, and the client is refused for a minute without counting attempts', async () => {
    expect(fixture.peers.dismiss('tun_other', peerId)).toBe(false);
    expect(fixture.peers.dismiss(tunnelId, peerId)).toBe(true);
    expect(await publisher.told('PeerGone')).toEqual(gone('dismissed'));
    expect(await subscriber.told('PeerError')).toMatchObject(ended('P2P_DISMISSED'));
    for (let n = 0; n < 70; n += 1) {
      expect(await subscriber.connect({ peer_id: peerId })).toBe(NOT_FOUND);
      await clock.advance(100);
    }
    expect(await (await enter('alice-2')).connect()).toMatch(/^peer_/);
    await pass(53_000, publisher, subscriber);
    expect(await subscriber.connect()).toMatch(/^peer_/);
  });

  it('gets no end notice when the edge stops, so direct connections continue', async () => {
    await fixture.control.end();
    await Promise.all([publisher.client.closed, subscriber.client.closed]);
    const notices = [...publisher.client.heard, ...subscriber.client.heard].map(({ type }) => type);
    expect(notices.filter((type) => type === 'PeerGone' || type === 'PeerError')).toEqual([]);
  });

  it('is refused by a draining edge, while existing joins stay', async () => {
    fixture.control.drain(30);
    expect(await subscriber.ask()).toMatchObject({ code: 'EDGE_SHUTTING_DOWN', retryable: true });
    expect(fixture.peers.of(tunnelId)).toHaveLength(1);
  });
});

it('a publisher that registers again with another secret can be joined with the new secret only', async () => {
  const publisher = await enter();
  const { tunnel_id } = await publisher.publish();
  const again = await enter('alice', publisher.resume);
  await again.publish({ tunnel_id, p2p_secret_hash: WRONG_HASH });
  const subscriber = await enter();
  expect(await subscriber.connect({ p2p_secret_hash: SECRET_HASH })).toBe(NOT_FOUND);
  expect(await subscriber.connect({ p2p_secret_hash: WRONG_HASH })).toMatch(/^peer_/);
});
