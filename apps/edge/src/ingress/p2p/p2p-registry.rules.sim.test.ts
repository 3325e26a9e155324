// Random publishers and subscribers, checked against a slow and simple model.

import { type Owner, type PeerEndpoint, sameOwner } from '@tunnel/rules/tunnels';
import { type P2pAudience, type P2pOffer, peerEndpointOf } from '@tunnel/tunnel-spec';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { P2pRegistry } from './p2p-registry.rules.ts';

const PEERS_PER_TUNNEL = 2;
const HELD_MS = 3000;
const OWNERS: readonly Owner[] = [
  { kind: 'operator' },
  { kind: 'account', accountId: 'alice' },
  { kind: 'account', accountId: 'bob' },
];
const HASHES = ['a'.repeat(64), 'b'.repeat(64)];

const move = fc.record({
  do: fc.constantFrom('open', 'open', 'hold', 'release', 'join', 'join', 'join', 'join', 'leave', 'dismiss'),
  tunnel: fc.constantFrom('t1', 't2', 't3'),
  name: fc.constantFrom('db', 'web'),
  hash: fc.constantFrom(...HASHES),
  service: fc.constantFrom('tcp' as const, 'udp' as const),
  allow: fc.constantFrom('account' as const, 'anyone' as const),
  owner: fc.constantFrom(...OWNERS),
  client: fc.constantFrom('c1', 'c2'),
  pick: fc.nat(),
  isReturn: fc.boolean(),
  elapsedMs: fc.oneof(fc.nat({ max: 200 }), fc.nat({ max: 30_000 })),
});

const keyOf = ({ name, account }: PeerEndpoint): string => JSON.stringify([name, account]);

interface Publisher {
  readonly tunnel: string;
  readonly offer: P2pOffer;
  readonly owner: Owner;
  heldUntil: number | null;
}

interface Joined {
  readonly peerId: string;
  readonly tunnel: string;
  readonly name: string;
  readonly client: string;
}

it('the p2p registry agrees with a simple model after each random step', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 120, size: 'max' }), (moves) => {
      const registry = new P2pRegistry({ peersPerTunnel: PEERS_PER_TUNNEL, sameHash: (a, b) => a === b });
      const publishers = new Map<string, Publisher>();
      /** Endpoints of the tunnels. The endpoint of a tunnel never changes. */
      const endpointOf = new Map<
        string,
        { readonly at: PeerEndpoint; readonly allow: P2pAudience; readonly by: Owner }
      >();
      let peers: Joined[] = [];
      const dismissals: { name: string; client: string; until: number }[] = [];
      const windows = new Map<string, { from: number; count: number }>();
      const living = (key: string, now: number): Publisher | undefined => {
        const publisher = publishers.get(key);
        return publisher !== undefined && publisher.heldUntil !== null && now >= publisher.heldUntil
          ? undefined
          : publisher;
      };
      const meant = (name: string, owner: Owner, hash: string, now: number): Publisher | undefined => {
        const all = [...publishers.keys()]
          .flatMap((key) => living(key, now) ?? [])
          .filter(({ offer }) => offer.name === name);
        const own = all.find((each) => each.offer.allow === 'account' && sameOwner(each.owner, owner));
        const open = all.find((each) => each.offer.allow === 'anyone');
        if (owner.kind === 'account') return own ?? open;
        const ofSecret = all.filter(({ offer }) => offer.secretHash === hash);
        return own ?? (ofSecret.length === 1 ? ofSecret[0] : undefined);
      };
      let now = 0;
      for (const [index, step] of moves.entries()) {
        now += step.elapsedMs;
        const { tunnel, client, hash, service } = step;
        const before = endpointOf.get(tunnel);
        const allow = before?.allow ?? step.allow;
        const publisherOwner = before?.by ?? step.owner;
        const { owner } = step;
        const at = before?.at ?? peerEndpointOf({ name: step.name, allow }, owner);
        const { name } = at;
        const key = keyOf(at);
        const picked = peers[step.pick % Math.max(1, peers.length)];
        if (step.do === 'open') {
          const offer = { name, secretHash: hash, service, allow };
          const isTaken = (living(key, now)?.tunnel ?? tunnel) !== tunnel;
          expect(registry.open(tunnel, offer, publisherOwner, now)?.code ?? 'opened').toBe(
            isTaken ? 'TUNNEL_P2P_NAME_IN_USE' : 'opened',
          );
          if (isTaken) continue;
          publishers.set(key, { tunnel, offer, owner: publisherOwner, heldUntil: null });
          endpointOf.set(tunnel, { at, allow, by: publisherOwner });
        } else if (step.do === 'hold') {
          registry.hold(at, tunnel, now + HELD_MS, now);
          const publisher = living(key, now);
          if (publisher?.tunnel === tunnel) publisher.heldUntil = now + HELD_MS;
        } else if (step.do === 'release') {
          const ended = registry.release(at, tunnel).map(({ peerId }) => peerId);
          expect(ended).toEqual(peers.filter((peer) => peer.tunnel === tunnel).map(({ peerId }) => peerId));
          peers = peers.filter((peer) => peer.tunnel !== tunnel);
          if (publishers.get(key)?.tunnel === tunnel) publishers.delete(key);
          endpointOf.delete(tunnel);
        } else if (step.do === 'join') {
          const peerId = `peer_${index}`;
          const former = step.isReturn ? picked?.peerId : undefined;
          const request = { name: step.name, secretHash: hash, service, owner, clientId: client, peerId: former };
          const decision = registry.join(request, peerId, now);
          const joined = decision.kind === 'joined' && decision.isNew ? 'new' : 'same';
          const outcome = decision.kind === 'joined' ? joined : decision.fault.code;
          const account = owner.kind === 'operator' ? 'operator' : owner.accountId;
          let window = windows.get(account);
          if (window !== undefined && now >= window.from + 60_000) window = undefined;
          const publisher = meant(step.name, owner, hash, now);
          const isDismissed = dismissals.some(
            (dismissal) => dismissal.name === step.name && dismissal.client === client && now < dismissal.until,
          );
          const ofTunnel = peers.filter((peer) => peer.tunnel === publisher?.tunnel);
          const isReturn = ofTunnel.some((peer) => peer.peerId === former && peer.client === client);
          let expected = isReturn ? 'same' : 'new';
          if ((window?.count ?? 0) >= 60) expected = 'P2P_TOO_MANY_ATTEMPTS';
          else if (publisher === undefined || isDismissed || publisher.offer.secretHash !== hash) {
            expected = 'P2P_NOT_FOUND';
            if (!isDismissed) windows.set(account, { from: window?.from ?? now, count: (window?.count ?? 0) + 1 });
          } else if (publisher.offer.service !== service) expected = 'P2P_SERVICE_MISMATCH';
          else if (publisher.heldUntil !== null) expected = 'P2P_AWAY';
          else if (!isReturn && ofTunnel.length >= PEERS_PER_TUNNEL) expected = 'P2P_PEER_LIMIT';
          expect(outcome).toBe(expected);
          // A joined subscriber has the current publisher, never an earlier one.
          if (decision.kind === 'joined') expect(decision.peer.tunnelId).toBe(publisher?.tunnel);
          if (outcome === 'new') peers.push({ peerId, tunnel: publisher?.tunnel ?? '', name: step.name, client });
        } else if (picked !== undefined) {
          if (step.do === 'dismiss') dismissals.push({ name: picked.name, client: picked.client, until: now + 60_000 });
          const gone = step.do === 'dismiss' ? registry.dismiss(picked.peerId, now) : registry.leave(picked.peerId);
          expect(gone?.peerId).toBe(picked.peerId);
          peers = peers.filter((peer) => peer !== picked);
        }
        expect(registry.peerCount).toBe(peers.length);
        for (const each of ['t1', 't2', 't3']) {
          const listed = registry.peersOf(each).map(({ peerId }) => peerId);
          expect(listed).toEqual(peers.filter((peer) => peer.tunnel === each).map(({ peerId }) => peerId));
          expect(listed.length).toBeLessThanOrEqual(PEERS_PER_TUNNEL);
        }
      }
    }),
    { numRuns: 50 },
  );
});
