// Refused joins cost the same amount of work for every reason, counted in comparisons instead of time. Peers that have left are
// remembered up to a limit.

import type { ControlMessageInput } from '@tunnel/protocol';
import type { Owner } from '@tunnel/rules/tunnels';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import type { P2pOffer } from '@tunnel/tunnel-spec';
import { beforeEach, expect, it } from 'vitest';
import { someTunnel } from '../../admin/rest.fixture.ts';
import { Registry } from '../../routing/registry.ts';
import { JoinedPeer } from './joined-peer.ts';
import { PeerJoins } from './peer-joins.ts';

const ALICE: Owner = { kind: 'account', accountId: 'alice' };
const BOB: Owner = { kind: 'account', accountId: 'bob' };
const HASH = 'a'.repeat(64);
const OFFER: P2pOffer = { name: 'office-db', secretHash: HASH, service: 'tcp', allow: 'account' };
const PEERS = 3;

let compared: [string, string][];
let told: [string, ControlMessageInput][];
let lines: number;
let joins: PeerJoins;
beforeEach(() => {
  [compared, told, lines] = [[], [], 0];
  const tunnels = new Registry();
  tunnels.add({ ...someTunnel('tun_1', ALICE), sessionId: 'ses_publisher', protocol: 'p2p' });
  const count = (): void => {
    lines += 1;
  };
  joins = new PeerJoins({
    peersPerTunnel: PEERS,
    tunnels,
    tell: (sessionId, message) => void told.push([sessionId, message]),
    clock: new FakeClock(),
    logger: Object.assign(createLogger({ level: 'silent', format: 'json' }), { info: count, warn: count }),
    sameHash: (a, b) => {
      compared.push([a, b]);
      return a === b;
    },
  });
  expect(joins.open('tun_1', OFFER, ALICE)).toBeNull();
});

const join = (fields: object = {}) =>
  joins.join(
    { name: 'office-db', secretHash: HASH, service: 'tcp', owner: ALICE, clientId: 'ses_1', ...fields },
    '127.0.0.1:5000',
  );

const peerIdOf = (joined: ReturnType<typeof join>): string => (joined as JoinedPeer).peer.peerId;

it('an unknown name, a wrong secret and a wrong account each cost one comparison, no message and no log line', () => {
  for (const fields of [{ name: 'nothing' }, { secretHash: 'b'.repeat(64) }, { owner: BOB }, { name: 'a\nb' }]) {
    expect(join(fields)).toMatchObject({ code: 'P2P_NOT_FOUND' });
    expect(compared.splice(0).map((pair) => pair.map(({ length }) => length))).toEqual([[64, 64]]);
  }
  expect([told, lines, joins.totals.requests]).toEqual([[], 0, 0]);
  expect(join()).toBeInstanceOf(JoinedPeer);
  expect([told.length, lines]).toEqual([1, 1]);
});

it('a returning publisher gets a message for each current peer and for the last peers that left', () => {
  const gone = Array.from({ length: PEERS + 2 }, () => {
    const peerId = peerIdOf(join());
    joins.leave('ses_1', peerId);
    return peerId;
  });
  const here = peerIdOf(join());
  told.length = 0;
  joins.publisherReady('tun_1');
  expect(
    told.map(([sessionId, message]) => [sessionId, message.type, 'peer_id' in message && message.peer_id]),
  ).toEqual([
    ...gone.slice(-PEERS).map((peerId) => ['ses_publisher', 'PeerGone', peerId]),
    ['ses_publisher', 'PeerJoined', here],
  ]);
  joins.release({ kind: 'peer-name', name: 'office-db', account: 'alice' }, 'tun_1');
  told.length = 0;
  joins.publisherReady('tun_1');
  expect([told, joins.counts]).toEqual([[], { direct: 0, relay: 0 }]);
});

it('a tunnel that is open but not listed yet is away, and gets no peer', () => {
  expect(joins.open('tun_2', { ...OFFER, name: 'early' }, ALICE)).toBeNull();
  expect(join({ name: 'early' })).toMatchObject({ code: 'P2P_AWAY' });
  expect(joins.of('tun_2')).toEqual([]);
});
