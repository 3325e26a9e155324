import type { Owner, PeerEndpoint } from '@tunnel/rules/tunnels';
import type { P2pOffer } from '@tunnel/tunnel-spec';
import { beforeEach, describe, expect, it } from 'vitest';
import { type JoinDecision, P2pRegistry, type PeerRequest } from './p2p-registry.rules.ts';

const account = (accountId: string): Owner => ({ kind: 'account', accountId });
const ALICE = account('alice');
const BOB = account('bob');
const OPERATOR: Owner = { kind: 'operator' };
const RIGHT = 'a'.repeat(64);
const WRONG = 'b'.repeat(64);
/** Endpoint of Alice's tunnel. */
const DB: PeerEndpoint = { kind: 'peer-name', name: 'db', account: 'alice' };
const OFFER: P2pOffer = { name: 'db', secretHash: RIGHT, service: 'tcp', allow: 'account' };

let registry: P2pRegistry;
let compared: number;
let ids: number;
beforeEach(() => {
  compared = 0;
  ids = 0;
  const sameHash = (a: string, b: string): boolean => {
    compared += 1;
    return a === b;
  };
  registry = new P2pRegistry({ peersPerTunnel: 2, sameHash });
  registry.open('tun_1', OFFER, ALICE, 0);
});

const join = (fields: Partial<PeerRequest> = {}, now = 1): JoinDecision => {
  ids += 1;
  const request = { name: 'db', secretHash: RIGHT, service: 'tcp', owner: ALICE, clientId: 'c1', ...fields } as const;
  return registry.join(request, `peer_${ids}`, now);
};
const said = (decision: JoinDecision): string =>
  decision.kind === 'refused' ? `${decision.fault.code}: ${decision.fault.message}` : decision.peer.peerId;

const NOT_FOUND = "P2P_NOT_FOUND: p2p 'db' was not found, or the secret does not match";

describe('joining a p2p tunnel', () => {
  it('is allowed for keys of the account and for the operator, for others only if the publisher allows everyone', () => {
    expect([said(join()), said(join({ owner: OPERATOR })), said(join({ owner: BOB }))]).toEqual([
      'peer_1',
      'peer_2',
      NOT_FOUND,
    ]);
    registry.open('tun_2', { ...OFFER, name: 'open', allow: 'anyone' }, ALICE, 2);
    expect(said(join({ name: 'OPEN', owner: BOB }))).toBe('peer_4');
  });

  it('is refused without the right secret or account, always with one message and after one comparison', () => {
    const answers = [
      join({ secretHash: WRONG }),
      join({ owner: BOB }),
      join({ owner: BOB, secretHash: WRONG, service: 'udp' }),
    ].map(said);
    expect(new Set(answers)).toEqual(new Set([NOT_FOUND]));
    expect(said(join({ name: 'nobody' }))).toBe(NOT_FOUND.replace("'db'", "'nobody'"));
    expect(compared).toBe(4);
  });

  it('reveals a service mismatch, an absent publisher or a full tunnel only with the right secret', () => {
    expect(said(join({ service: 'udp' }))).toBe("P2P_SERVICE_MISMATCH: 'db' is a tcp service");
    registry.hold(DB, 'tun_1', 1000, 1);
    expect(said(join({}, 2))).toBe("P2P_AWAY: the publisher of 'db' is not connected right now");
    expect(said(join({ secretHash: WRONG }, 2))).toBe(NOT_FOUND);
    registry.open('tun_1', OFFER, ALICE, 3);
    join({}, 4);
    join({}, 4);
    expect(said(join({}, 4))).toBe("P2P_PEER_LIMIT: 'db' holds its limit of 2 peers");
  });

  it('with an invalid name is refused like an unknown name, in a message of one line', () => {
    expect(said(join({ name: 'a\nb' }))).toBe("P2P_NOT_FOUND: p2p 'a?b' was not found, or the secret does not match");
  });
});

describe('a name that two accounts publish', () => {
  const joinedTunnel = (decision: JoinDecision): string =>
    decision.kind === 'joined' ? decision.peer.tunnelId : decision.fault.code;

  beforeEach(() => {
    expect(registry.open('tun_bob', { ...OFFER, secretHash: WRONG }, BOB, 1)).toBeNull();
  });

  it("is a separate tunnel for each account, and a subscriber joins the tunnel of the subscriber's account", () => {
    expect(joinedTunnel(join())).toBe('tun_1');
    expect(joinedTunnel(join({ owner: BOB, secretHash: WRONG }))).toBe('tun_bob');
    expect([said(join({ secretHash: WRONG })), said(join({ owner: BOB }))]).toEqual([NOT_FOUND, NOT_FOUND]);
  });

  it('means for the operator the tunnel with the given secret', () => {
    expect(joinedTunnel(join({ owner: OPERATOR }))).toBe('tun_1');
    expect(joinedTunnel(join({ owner: OPERATOR, secretHash: WRONG }))).toBe('tun_bob');
    expect(said(join({ owner: OPERATOR, secretHash: 'c'.repeat(64) }))).toBe(NOT_FOUND);
  });

  it('is not found for the operator while both tunnels have the given secret', () => {
    expect(registry.open('tun_bob', OFFER, BOB, 1)).toBeNull();
    expect(said(join({ owner: OPERATOR }))).toBe(NOT_FOUND);
    registry.release({ ...DB, account: 'bob' }, 'tun_bob');
    expect(joinedTunnel(join({ owner: OPERATOR }))).toBe('tun_1');
  });

  it("means for the operator the operator's own tunnel first", () => {
    expect(registry.open('tun_op', OFFER, OPERATOR, 1)).toBeNull();
    expect(joinedTunnel(join({ owner: OPERATOR }))).toBe('tun_op');
  });

  it('cannot be reached from another account by adding the account to the name', () => {
    expect(said(join({ owner: { kind: 'account', accountId: 'carol' }, name: 'alice/db' }))).toMatch(/^P2P_NOT_FOUND/);
    expect(said(join({ owner: OPERATOR, name: 'alice/db' }))).toMatch(/^P2P_NOT_FOUND/);
  });
});

describe('a name open to everyone', () => {
  it("is unique across accounts, and a name of the subscriber's own account comes first", () => {
    expect(registry.open('tun_open', { ...OFFER, allow: 'anyone' }, BOB, 1)).toBeNull();
    expect(registry.open('tun_3', { ...OFFER, allow: 'anyone' }, ALICE, 1)?.code).toBe('TUNNEL_P2P_NAME_IN_USE');
    expect(join()).toMatchObject({ peer: { tunnelId: 'tun_1' } });
    expect(join({ owner: BOB })).toMatchObject({ peer: { tunnelId: 'tun_open' } });
    expect(said(join({ owner: OPERATOR }))).toBe(NOT_FOUND);
    registry.release(DB, 'tun_1');
    expect([join(), join({ owner: OPERATOR })]).toMatchObject([
      { peer: { tunnelId: 'tun_open' } },
      { fault: { code: 'P2P_PEER_LIMIT' } },
    ]);
  });
});

describe('60 failed joins within a minute', () => {
  it('block the account for the rest of the minute, even with the right secret, but no other account', () => {
    for (let n = 0; n < 60; n += 1) expect(said(join({ secretHash: WRONG }, n * 500))).toBe(NOT_FOUND);
    const before = compared;
    expect(said(join({}, 30_000))).toBe('P2P_TOO_MANY_ATTEMPTS: too many attempts; try again in 30 s');
    expect(compared).toBe(before);
    registry.open('tun_2', { ...OFFER, name: 'open', allow: 'anyone' }, BOB, 30_000);
    expect(said(join({ name: 'open', owner: BOB }, 30_000))).toMatch(/^peer_/);
    expect(said(join({}, 60_000))).toMatch(/^peer_/);
  });

  it('do not include joins to a name that is reserved since the previous run', () => {
    registry.reserve({ ...DB, name: 'old' }, 'the last run', 30_000, 0);
    for (let n = 0; n < 200; n += 1) expect(said(join({ name: 'old' }, 2))).toMatch(/^P2P_NOT_FOUND/);
    expect(said(join({}, 3))).toMatch(/^peer_/);
  });

  it('do not include joins that fail because the publisher is away or the service differs', () => {
    registry.hold(DB, 'tun_1', 1_000_000, 1);
    for (let n = 0; n < 200; n += 1) expect(said(join({}, 2))).toMatch(/^P2P_AWAY/);
    for (let n = 0; n < 200; n += 1) expect(said(join({ service: 'udp' }, 2))).toMatch(/^P2P_SERVICE/);
  });
});

describe('a p2p name', () => {
  it('has one publisher, and is held for a while after the publisher has left', () => {
    expect(registry.open('tun_2', OFFER, ALICE, 1)?.message).toBe("p2p name 'db' is already in use");
    registry.hold(DB, 'tun_1', 30_000, 1);
    expect(registry.open('tun_2', OFFER, ALICE, 29_999)?.code).toBe('TUNNEL_P2P_NAME_IN_USE');
    expect(said(join({}, 30_000))).toBe(NOT_FOUND);
    expect(registry.open('tun_2', OFFER, ALICE, 30_000)).toBeNull();
    expect(join({}, 30_001)).toMatchObject({ kind: 'joined', peer: { tunnelId: 'tun_2' } });
  });

  it('reserved since the previous run cannot be joined, and its previous client can open it', () => {
    expect(registry.reserve({ ...DB, name: 'old' }, 'the last run', 30_000, 0)).toBe(true);
    expect(said(join({ name: 'old' }))).toMatch(/^P2P_NOT_FOUND/);
    registry.reassign({ ...DB, name: 'old' }, 'the last run', 'tun_3', 1);
    expect(registry.open('tun_3', { ...OFFER, name: 'old' }, ALICE, 2)).toBeNull();
    expect(registry.reserve(DB, 'the last run', 30_000, 2)).toBe(false);
  });

  it('that is released ends its own peers, and not the peers of the next publisher', () => {
    join();
    registry.hold(DB, 'tun_1', 10, 1);
    registry.open('tun_2', OFFER, ALICE, 20);
    const second = join({}, 21);
    expect(registry.release(DB, 'tun_1').map(({ peerId }) => peerId)).toEqual(['peer_1']);
    expect(registry.peersOf('tun_2')).toEqual([second.kind === 'joined' ? second.peer : null]);
    expect(registry.get('peer_1')).toBeUndefined();
    registry.release(DB, 'tun_2');
    expect([registry.peerCount, said(join({}, 22))]).toEqual([0, NOT_FOUND]);
  });
});

describe('a peer', () => {
  it('that rejoins with its id stays the same peer, even if the tunnel is full; another client cannot use the id', () => {
    join();
    join({ clientId: 'c2' });
    expect(join({ peerId: 'peer_1' })).toMatchObject({ isNew: false, peer: { peerId: 'peer_1' } });
    expect(said(join({ peerId: 'peer_2' }))).toMatch(/^P2P_PEER_LIMIT/);
    registry.leave('peer_2');
    expect(join({ peerId: 'peer_1', clientId: 'c3' })).toMatchObject({ isNew: true, peer: { peerId: 'peer_5' } });
  });

  it('of a restarted client replaces the previous peer of that client, even if the tunnel is full', () => {
    join();
    join({ clientId: 'c2' });
    registry.resumed(['peer_1', 'gone']);
    expect(join()).toMatchObject({ isNew: true, peer: { peerId: 'peer_3' }, replaced: { peerId: 'peer_1' } });
    expect(registry.peersOf('tun_1').map(({ peerId }) => peerId)).toEqual(['peer_2', 'peer_3']);
    // The old peer is replaced only once, and only by a join of the same client.
    expect(said(join())).toMatch(/^P2P_PEER_LIMIT/);
    expect(said(join({ clientId: 'c2' }))).toMatch(/^P2P_PEER_LIMIT/);
  });

  it('that its client names after a resume is not replaced by later joins', () => {
    join();
    registry.resumed(['peer_1']);
    expect(join({ peerId: 'peer_1' })).toMatchObject({ isNew: false });
    expect(join()).toEqual({ kind: 'joined', isNew: true, peer: expect.objectContaining({ peerId: 'peer_3' }) });
    expect(registry.peerCount).toBe(2);
  });

  it('that was dismissed gets P2P_NOT_FOUND for 60 s without counting as failed; other clients can join', () => {
    join();
    expect(registry.dismiss('peer_1', 1000)?.clientId).toBe('c1');
    for (let n = 0; n < 100; n += 1) expect(said(join({}, 2000))).toBe(NOT_FOUND);
    expect(said(join({ clientId: 'c2' }, 2000))).toMatch(/^peer_/);
    expect(said(join({}, 61_000))).toMatch(/^peer_/);
    expect(registry.dismiss('nobody', 61_000)).toBeNull();
  });
});
