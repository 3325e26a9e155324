// Random lives of a session, checked against a ledger of endpoints that is built from the effects only.

import { endpointKey, type PublicEndpoint } from '@tunnel/rules/tunnels';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type SessionEffect,
  type SessionEvent,
  type SessionState,
  startSession,
  transitionSession,
} from './session-life.rules.ts';

const RULES = { windowMs: 30_000 };
const IDS = ['a', 'b', 'c'] as const;

type Move =
  | { readonly do: 'lose' | 'lose-old' | 'resume' | 'end' | 'wait' }
  | { readonly do: 'register' | 'register-late'; readonly tunnel: number; readonly endpoint: number }
  | { readonly do: 'unregister'; readonly tunnel: number };

const tunnel = fc.nat({ max: IDS.length - 1 });
const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('register' as const), tunnel, endpoint: fc.nat({ max: 2 }) }) },
  fc.record({ do: fc.constant('register-late' as const), tunnel, endpoint: fc.nat({ max: 2 }) }),
  fc.record({ do: fc.constant('unregister' as const), tunnel }),
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('lose' as const, 'resume' as const, 'wait' as const) }) },
  fc.record({ do: fc.constantFrom('lose-old' as const, 'end' as const) }),
);

/** State of the endpoints after carrying out all effects. Throws on an effect that is impossible in the current state. */
class Ledger {
  readonly listening = new Map<string, string>();
  readonly held = new Map<string, { readonly owner: string; readonly until: number }>();
  readonly open = new Set<string>();
  forgotten = false;

  /** Whether the driver could open a listener or join the group: the endpoint must not belong to another tunnel. */
  canListen(at: string, owner: string): boolean {
    const user = this.listening.get(at) ?? this.held.get(at)?.owner;
    return user === undefined || user === owner;
  }

  listen(at: string, owner: string): void {
    this.held.delete(at);
    this.listening.set(at, owner);
  }

  perform(effect: SessionEffect): void {
    switch (effect.kind) {
      case 'list-tunnel':
        expect(this.listening.get(keyOf(effect))).toBe(effect.tunnelId);
        return;
      case 'close-endpoint':
        expect(this.listening.get(keyOf(effect))).toBe(effect.tunnelId);
        this.listening.delete(keyOf(effect));
        // For a member, closing means leaving the group, so no endpoint is left to hold.
        if (effect.endpoint.kind !== 'member') this.held.set(keyOf(effect), { owner: effect.tunnelId, until: -1 });
        return;
      case 'hold-endpoint':
      case 'release-endpoint':
        expect(this.held.get(keyOf(effect))?.owner).toBe(effect.tunnelId);
        if (effect.kind === 'release-endpoint') this.held.delete(keyOf(effect));
        else this.held.set(keyOf(effect), { owner: effect.tunnelId, until: effect.until });
        return;
      case 'tunnel-opened':
        expect(this.open.has(effect.tunnelId)).toBe(false);
        this.open.add(effect.tunnelId);
        return;
      case 'tunnel-closed':
        expect(this.open.delete(effect.tunnelId)).toBe(true);
        return;
      case 'replace-connection':
        return;
      case 'forget-session':
        this.forgotten = true;
    }
  }
}

/** Key of an endpoint. Members of a group have separate keys. */
const keyOf = ({ endpoint, tunnelId }: { readonly endpoint: PublicEndpoint; readonly tunnelId: string }): string =>
  endpoint.kind === 'member' ? `${endpointKey(endpoint)} ${tunnelId}` : endpointKey(endpoint);

/**
 * One of three endpoints of a tunnel: two ports of its own, and membership in a common group. A tunnel can move, but never to an endpoint
 * of another tunnel.
 */
const endpointOf = (tunnelAt: number, which: number): PublicEndpoint =>
  which === 2
    ? { kind: 'member', groupId: 'pool' }
    : { kind: 'port', transport: 'tcp', port: 20_000 + tunnelAt * 2 + which };

it('a session keeps one owner per port and one open record per tunnel, and nothing after its end, over random events', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(move, fc.nat({ max: 20_000 })), { maxLength: 60, size: 'max' }), (moves) => {
      const ledger = new Ledger();
      let state: SessionState = startSession(1);
      let connectionId = 1;
      let now = 0;
      const feed = (event: SessionEvent): void => {
        const [next, effects] = transitionSession(state, event, now, RULES);
        state = next;
        for (const effect of effects) ledger.perform(effect);
      };
      for (const [{ do: action, ...what }, elapsedMs] of moves) {
        now += elapsedMs;
        feed({ kind: 'time-passed' });
        if (action === 'lose') feed({ kind: 'connection-lost', connectionId });
        if (action === 'lose-old') feed({ kind: 'connection-lost', connectionId: connectionId - 1 });
        if (action === 'end') feed({ kind: 'session-ended' });
        if (action === 'resume') {
          connectionId += 1;
          feed({ kind: 'resumed', connectionId });
        }
        if ('tunnel' in what) {
          const tunnelId = IDS[what.tunnel] as string;
          if (action === 'unregister') feed({ kind: 'tunnel-ended', tunnelId });
          else if ('endpoint' in what) {
            const endpoint = endpointOf(what.tunnel, what.endpoint);
            const at = keyOf({ endpoint, tunnelId });
            if (!ledger.canListen(at, tunnelId)) continue;
            ledger.listen(at, tunnelId);
            feed({
              kind: 'tunnel-registered',
              connectionId: action === 'register' ? connectionId : connectionId - 1,
              tunnelId,
              endpoint,
            });
          }
        }
        checkAgainst(state, ledger);
      }
      now += RULES.windowMs;
      feed({ kind: 'connection-lost', connectionId });
      now += RULES.windowMs;
      feed({ kind: 'time-passed' });
      expect([state.kind, ledger.listening.size, ledger.held.size, ledger.open.size, ledger.forgotten]).toEqual([
        'ended',
        0,
        0,
        0,
        true,
      ]);
    }),
    { numRuns: 100 },
  );
});

/** Expects the state to match the ledger exactly. */
const checkAgainst = (state: SessionState, ledger: Ledger): void => {
  const tunnels = state.kind === 'ended' ? [] : state.tunnels;
  const live = tunnels.filter(({ kind }) => kind === 'live').map((one) => `${keyOf(one)}=${one.tunnelId}`);
  const held = tunnels
    .filter(({ kind, endpoint }) => kind === 'held' && endpoint.kind !== 'member')
    .map((one) => `${keyOf(one)}=${one.tunnelId}`);
  expect([...ledger.listening].map(([at, owner]) => `${at}=${owner}`).sort()).toEqual(live.sort());
  expect([...ledger.held].map(([at, { owner }]) => `${at}=${owner}`).sort()).toEqual(held.sort());
  expect([...ledger.open].sort()).toEqual(tunnels.map(({ tunnelId }) => tunnelId).sort());
  if (state.kind === 'lost') expect(live).toEqual([]);
  for (const { until } of ledger.held.values()) expect(until).toBeGreaterThan(0);
};
