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
/** Alice's own. */
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

describe('who may join', () => {
  it('keys of the account of the publisher, and the operator; anyone where the publisher says so', () => {
    expect([said(join()), said(join({ owner: OPERATOR })), said(join({ owner: BOB }))]).toEqual([
      'peer_1',
      'peer_2',
      NOT_FOUND,
    ]);
    registry.open('tun_2', { ...OFFER, name: 'open', allow: 'anyone' }, ALICE, 2);
    expect(said(join({ name: 'OPEN', owner: BOB }))).toBe('peer_4');
  });

  it('nobody without the secret; all who may not get one answer, and are compared before it', () => {
    const answers = [
      join({ secretHash: WRONG }),
      join({ owner: BOB }),
      join({ owner: BOB, secretHash: WRONG, service: 'udp' }),
    ].map(said);
    expect(new Set(answers)).toEqual(new Set([NOT_FOUND]));
    expect(said(join({ name: 'nobody' }))).toBe(NOT_FOUND.replace("'db'", "'nobody'"));
    expect(compared).toBe(4);
  });

  it('is told of another service, a publisher that is away, and a full tunnel, only with the secret', () => {
    expect(said(join({ service: 'udp' }))).toBe("P2P_SERVICE_MISMATCH: 'db' is a tcp service");
    registry.hold(DB, 'tun_1', 1000, 1);
    expect(said(join({}, 2))).toBe("P2P_AWAY: the publisher of 'db' is not connected right now");
    expect(said(join({ secretHash: WRONG }, 2))).toBe(NOT_FOUND);
    registry.open('tun_1', OFFER, ALICE, 3);
    join({}, 4);
    join({}, 4);
    expect(said(join({}, 4))).toBe("P2P_PEER_LIMIT: 'db' holds its limit of 2 peers");
  });

  it('a name that can be none is as unknown as any, and breaks no line', () => {
    expect(said(join({ name: 'a\nb' }))).toBe("P2P_NOT_FOUND: p2p 'a?b' was not found, or the secret does not match");
  });
});

describe('a name of two accounts', () => {
  const joinedTunnel = (decision: JoinDecision): string =>
    decision.kind === 'joined' ? decision.peer.tunnelId : decision.fault.code;

  beforeEach(() => {
    expect(registry.open('tun_bob', { ...OFFER, secretHash: WRONG }, BOB, 1)).toBeNull();
  });

  it('is a different tunnel for each of them: a subscriber means that of its own account', () => {
    expect(joinedTunnel(join())).toBe('tun_1');
    expect(joinedTunnel(join({ owner: BOB, secretHash: WRONG }))).toBe('tun_bob');
    expect([said(join({ secretHash: WRONG })), said(join({ owner: BOB }))]).toEqual([NOT_FOUND, NOT_FOUND]);
  });

  it('means for the operator the one with its secret, so that no account keeps the operator from the tunnel of another', () => {
    expect(joinedTunnel(join({ owner: OPERATOR }))).toBe('tun_1');
    expect(joinedTunnel(join({ owner: OPERATOR, secretHash: WRONG }))).toBe('tun_bob');
    expect(said(join({ owner: OPERATOR, secretHash: 'c'.repeat(64) }))).toBe(NOT_FOUND);
  });

  it('means neither of them for the operator when both have its secret', () => {
    expect(registry.open('tun_bob', OFFER, BOB, 1)).toBeNull();
    expect(said(join({ owner: OPERATOR }))).toBe(NOT_FOUND);
    registry.release({ ...DB, account: 'bob' }, 'tun_bob');
    expect(joinedTunnel(join({ owner: OPERATOR }))).toBe('tun_1');
  });

  it('means for the operator its own tunnel first, so that no account can take that from it', () => {
    expect(registry.open('tun_op', OFFER, OPERATOR, 1)).toBeNull();
    expect(joinedTunnel(join({ owner: OPERATOR }))).toBe('tun_op');
  });

  it('cannot be spelled by another account: the key of a lease is no name', () => {
    expect(said(join({ owner: { kind: 'account', accountId: 'carol' }, name: 'alice/db' }))).toMatch(/^P2P_NOT_FOUND/);
    expect(said(join({ owner: OPERATOR, name: 'alice/db' }))).toMatch(/^P2P_NOT_FOUND/);
  });
});

describe('a name that is open to everyone', () => {
  it('is one for all accounts, and stands behind the name of the own account', () => {
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

describe('60 refusals a minute', () => {
  it('of an account are enough: then not even the right secret is looked at, until the minute is over', () => {
    for (let n = 0; n < 60; n += 1) expect(said(join({ secretHash: WRONG }, n * 500))).toBe(NOT_FOUND);
    const before = compared;
    expect(said(join({}, 30_000))).toBe('P2P_TOO_MANY_ATTEMPTS: too many attempts; try again in 30 s');
    expect(compared).toBe(before);
    registry.open('tun_2', { ...OFFER, name: 'open', allow: 'anyone' }, BOB, 30_000);
    expect(said(join({ name: 'open', owner: BOB }, 30_000))).toMatch(/^peer_/);
    expect(said(join({}, 60_000))).toMatch(/^peer_/);
  });

  it('do not count a name that waits for its publisher since the last run: its subscribers may be back sooner', () => {
    registry.reserve({ ...DB, name: 'old' }, 'the last run', 30_000, 0);
    for (let n = 0; n < 200; n += 1) expect(said(join({ name: 'old' }, 2))).toMatch(/^P2P_NOT_FOUND/);
    expect(said(join({}, 3))).toMatch(/^peer_/);
  });

  it('count what nobody may know alone: waiting for a publisher is no attempt', () => {
    registry.hold(DB, 'tun_1', 1_000_000, 1);
    for (let n = 0; n < 200; n += 1) expect(said(join({}, 2))).toMatch(/^P2P_AWAY/);
    for (let n = 0; n < 200; n += 1) expect(said(join({ service: 'udp' }, 2))).toMatch(/^P2P_SERVICE/);
  });
});

describe('a name', () => {
  it('has one publisher, which has a while to come back', () => {
    expect(registry.open('tun_2', OFFER, ALICE, 1)?.message).toBe("p2p name 'db' is already in use");
    registry.hold(DB, 'tun_1', 30_000, 1);
    expect(registry.open('tun_2', OFFER, ALICE, 29_999)?.code).toBe('TUNNEL_P2P_NAME_IN_USE');
    expect(said(join({}, 30_000))).toBe(NOT_FOUND);
    expect(registry.open('tun_2', OFFER, ALICE, 30_000)).toBeNull();
    expect(join({}, 30_001)).toMatchObject({ kind: 'joined', peer: { tunnelId: 'tun_2' } });
  });

  it('that is held since the last run is nobody’s to join, and its client’s to open', () => {
    expect(registry.reserve({ ...DB, name: 'old' }, 'the last run', 30_000, 0)).toBe(true);
    expect(said(join({ name: 'old' }))).toMatch(/^P2P_NOT_FOUND/);
    registry.reassign({ ...DB, name: 'old' }, 'the last run', 'tun_3', 1);
    expect(registry.open('tun_3', { ...OFFER, name: 'old' }, ALICE, 2)).toBeNull();
    expect(registry.reserve(DB, 'the last run', 30_000, 2)).toBe(false);
  });

  it('that is given back takes its peers along, and not those of its successor', () => {
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
  it('that comes back is the same one, also when the tunnel is full; somebody else’s is not', () => {
    join();
    join({ clientId: 'c2' });
    expect(join({ peerId: 'peer_1' })).toMatchObject({ isNew: false, peer: { peerId: 'peer_1' } });
    expect(said(join({ peerId: 'peer_2' }))).toMatch(/^P2P_PEER_LIMIT/);
    registry.leave('peer_2');
    expect(join({ peerId: 'peer_1', clientId: 'c3' })).toMatchObject({ isNew: true, peer: { peerId: 'peer_5' } });
  });

  it('whose client was started again takes the place of its last join, also when the tunnel is full', () => {
    join();
    join({ clientId: 'c2' });
    registry.resumed(['peer_1', 'gone']);
    expect(join()).toMatchObject({ isNew: true, peer: { peerId: 'peer_3' }, replaced: { peerId: 'peer_1' } });
    expect(registry.peersOf('tun_1').map(({ peerId }) => peerId)).toEqual(['peer_2', 'peer_3']);
    // Once, and for nobody else.
    expect(said(join())).toMatch(/^P2P_PEER_LIMIT/);
    expect(said(join({ clientId: 'c2' }))).toMatch(/^P2P_PEER_LIMIT/);
  });

  it('that its client names after the session was resumed is replaced by none', () => {
    join();
    registry.resumed(['peer_1']);
    expect(join({ peerId: 'peer_1' })).toMatchObject({ isNew: false });
    expect(join()).toEqual({ kind: 'joined', isNew: true, peer: expect.objectContaining({ peerId: 'peer_3' }) });
    expect(registry.peerCount).toBe(2);
  });

  it('that was dismissed is told for 60 s that there is nothing, which is not counted; its neighbours are not', () => {
    join();
    expect(registry.dismiss('peer_1', 1000)?.clientId).toBe('c1');
    for (let n = 0; n < 100; n += 1) expect(said(join({}, 2000))).toBe(NOT_FOUND);
    expect(said(join({ clientId: 'c2' }, 2000))).toMatch(/^peer_/);
    expect(said(join({}, 61_000))).toMatch(/^peer_/);
    expect(registry.dismiss('nobody', 61_000)).toBeNull();
  });
});
