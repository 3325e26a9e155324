// Sessions of clients: passes events to their state machines and performs the effects. The rules are in session-life.rules.

import { Fault } from '@tunnel/errors';
import { CLOSE_CODES } from '@tunnel/protocol';
import { FairShare } from '@tunnel/rules/rate';
import { type Owner, ownerKey, sameEndpoint, sameOwner } from '@tunnel/rules/tunnels';
import {
  type Clock,
  crashOnThrow,
  equalInConstantTime,
  type LogLimiter,
  randomId,
  randomToken,
  sha256Hex,
} from '@tunnel/runtime';
import type { Backend } from '../backend/backend.ts';
import type { GoneReason, PeerJoins } from '../ingress/p2p/peer-joins.ts';
import type { EndpointRecovery } from '../routing/endpoint-recovery.ts';
import type { EndpointRegistry } from '../routing/endpoints.ts';
import type { Groups } from '../routing/groups.ts';
import type { Registry } from '../routing/registry.ts';
import type { PolicyKeeper } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { SessionMuxes } from './carriers.ts';
import type { ControlConnection } from './control-connection.ts';
import { RESUME_WINDOW_MS } from './limits.ts';
import { Session } from './session.ts';
import { findTunnel, isDue, type SessionEffect, type SessionEvent, transitionSession } from './session-life.rules.ts';

/**
 * Maximum of sessions per edge, including disconnected sessions.
 * @limit operator: Clients per edge | `SESSION_LIMIT`
 */
const SESSIONS_MAX = 20_000;
/**
 * Maximum of sessions per account: a quarter of the total. A client that disconnects and starts again leaves a held session behind each
 * time.
 * @limit tunnels: Clients per account and edge | `SESSION_LIMIT`
 */
const SESSIONS_PER_ACCOUNT = 5000;
/** Time for DNS lookups of alert URLs per connection. Later URLs are not looked up. Well below REGISTER_TIMEOUT_MS. */
const ALERT_LOOKUPS_PER_CONNECTION_MS = 5000;

/** Identity of a client from its Auth message. */
interface SessionClient {
  readonly owner: Owner;
  readonly keyId: string;
  readonly capabilities: readonly string[];
  readonly clientName?: string | undefined;
}

const RULES = { windowMs: RESUME_WINDOW_MS };
const TIME_PASSED: SessionEvent = { kind: 'time-passed' };

export interface SessionLimits {
  readonly limit: number;
  /** Maximum number of client sessions per account. */
  readonly perHolder: number;
}

const SESSION_LIMITS: SessionLimits = {
  limit: SESSIONS_MAX,
  perHolder: SESSIONS_PER_ACCOUNT,
};

interface SessionsOptions {
  readonly clock: Clock;
  readonly log: LogLimiter;
  readonly backend: Pick<Backend, 'tunnelOpened' | 'tunnelClosed'>;
  readonly endpoints: EndpointRegistry;
  readonly groups: Pick<Groups, 'leave'>;
  /** Joined p2p peers. A join ends with the subscriber's session. */
  readonly peers: Pick<PeerJoins, 'sessionOver' | 'sessionResumed'>;
  readonly tunnels: Registry;
  readonly policies: Pick<PolicyKeeper, 'forget'>;
  /** Keeps public endpoints across restarts. Undefined if endpoints are not kept. */
  readonly recovery?: EndpointRecovery | undefined;
  readonly muxes: SessionMuxes;
  /** Limits for the number of sessions. Default: SESSIONS_MAX and SESSIONS_PER_ACCOUNT. */
  readonly sessionLimits?: SessionLimits | undefined;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #room: FairShare;
  readonly #byConnection = new Map<ControlConnection, Session>();

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#room = new FairShare({
      ...(options.sessionLimits ?? SESSION_LIMITS),
      unlimited: ownerKey({ kind: 'operator' }),
    });
  }

  /** Number of client sessions with a connected client. */
  get liveCount(): number {
    return this.#byConnection.size;
  }

  of(connection: ControlConnection): Session | undefined {
    return this.#byConnection.get(connection);
  }

  get(sessionId: string): Session | undefined {
    return this.#sessions.get(sessionId);
  }

  values(): IterableIterator<Session> {
    return this.#sessions.values();
  }

  start(
    connection: ControlConnection,
    who: SessionClient,
    secretOfBefore?: string,
  ): { session: Session; secret: string } {
    this.#checkRoom(ownerKey(who.owner));
    const secret = this.#secretFor(who.owner, secretOfBefore);
    const sessionId = randomId('ses');
    const session = new Session({ sessionId, secretHash: sha256Hex(secret), ...who, connection });
    this.#sessions.set(sessionId, session);
    this.#room.take(ownerKey(who.owner));
    this.#attach(session, connection);
    return { session, secret };
  }

  /** Throws if the session limit is reached. Disconnected sessions have no connection, so no other limit bounds their number. */
  #checkRoom(owner: string): void {
    const refusal = this.#room.refusal(owner);
    if (refusal === null) return;
    const { limit, perHolder } = this.#room;
    const reason =
      refusal === 'holder-full'
        ? `session limit of ${perHolder} reached for this account (including sessions waiting for a client to reconnect)`
        : `session limit of ${limit} reached for this edge`;
    throw new Fault('SESSION_LIMIT', { reason });
  }

  /**
   * Returns the resume secret for a new session. A client with endpoints from the edge's previous run keeps its secret, so that the next
   * run would recognize it as well.
   */
  #secretFor(owner: Owner, secretOfBefore: string | undefined): string {
    const isKnown =
      secretOfBefore !== undefined && this.#options.recovery?.isClaimant(owner, sha256Hex(secretOfBefore)) === true;
    return isKnown ? secretOfBefore : randomToken();
  }

  /** Returns the claimed session, or null if the session does not exist or if the secret or the owner differs. */
  claimed(claim: { readonly sessionId: string; readonly secret: string; readonly owner: Owner }): Session | null {
    const session = this.#sessions.get(claim.sessionId);
    if (session === undefined) return null;
    // Ends an expired session now, before the next timer tick does.
    this.feed(session, TIME_PASSED);
    if (session.state.kind === 'ended' || !sameOwner(session.owner, claim.owner)) return null;
    return equalInConstantTime(session.secretHash, sha256Hex(claim.secret)) ? session : null;
  }

  /** Resumes a client's session. Returns null for an invalid claim, as claimed() does. */
  resume(
    connection: ControlConnection,
    claim: SessionClient & { readonly sessionId: string; readonly secret: string },
  ): Session | null {
    const session = this.claimed(claim);
    if (session === null) return null;
    this.feed(session, { kind: 'resumed', connectionId: connection.id });
    session.keyId = claim.keyId;
    session.capabilities = claim.capabilities;
    session.clientName = claim.clientName;
    this.#attach(session, connection);
    this.#options.peers.sessionResumed(session.sessionId);
    return session;
  }

  /** Handles a closed or dead connection. Open streams finish while their carriers live. */
  lost(connection: ControlConnection): void {
    const session = this.#byConnection.get(connection);
    if (session === undefined) return;
    this.feed(session, { kind: 'connection-lost', connectionId: connection.id });
    this.#detach(session, 'control connection lost');
  }

  /**
   * Ends a session on purpose; no endpoint is held. The caller closes the connection, and open streams can finish. `peersAre` is the reason
   * sent to joined publishers; `peerFault` is the fault sent to the client for these joins, or null.
   */
  end(session: Session, why: string, peersAre: GoneReason, peerFault: Fault | null = null): void {
    this.#options.peers.sessionOver(session.sessionId, peersAre, peerFault);
    this.feed(session, { kind: 'session-ended' });
    this.#detach(session, why);
  }

  /** Lists a tunnel after its endpoint has opened. Returns false if the session disconnected or changed its connection meanwhile. */
  list(session: Session, connection: ControlConnection, tunnel: Tunnel): boolean {
    const { tunnelId, endpoint } = tunnel;
    const before = session.tunnels.get(tunnelId);
    session.tunnels.set(tunnelId, tunnel);
    const effects = this.feed(session, { kind: 'tunnel-registered', connectionId: connection.id, tunnelId, endpoint });
    if (effects.some(({ kind }) => kind === 'list-tunnel')) return true;
    if (before === undefined) session.tunnels.delete(tunnelId);
    else session.tunnels.set(tunnelId, before);
    return false;
  }

  /** Ends a tunnel of a session. Returns false if the session has no such tunnel. */
  endTunnel(session: Session, tunnelId: string): boolean {
    if (findTunnel(session.state, tunnelId) === undefined) return false;
    this.feed(session, { kind: 'tunnel-ended', tunnelId });
    return true;
  }

  tick(): void {
    const now = this.#options.clock.monotonic();
    for (const session of this.#sessions.values()) if (isDue(session.state, now)) this.feed(session, TIME_PASSED);
  }

  feed(session: Session, event: SessionEvent): readonly SessionEffect[] {
    const [state, effects] = transitionSession(session.state, event, this.#options.clock.monotonic(), RULES);
    session.state = state;
    crashOnThrow(() => {
      for (const effect of effects) this.#perform(session, effect);
    });
    return effects;
  }

  #attach(session: Session, connection: ControlConnection): void {
    session.connection = connection;
    session.alertLookupMs = ALERT_LOOKUPS_PER_CONNECTION_MS;
    session.upstream.mux = this.#options.muxes.open(session);
    this.#byConnection.set(connection, session);
  }

  #detach(session: Session, why: string): void {
    if (session.connection !== null) this.#byConnection.delete(session.connection);
    const { mux } = session.upstream;
    if (mux !== null) this.#options.muxes.retire(mux, why);
    session.connection = null;
    session.upstream.mux = null;
  }

  #perform(session: Session, effect: SessionEffect): void {
    const { endpoints, tunnels } = this.#options;
    switch (effect.kind) {
      case 'list-tunnel': {
        const before = tunnels.get(effect.tunnelId);
        if (before !== undefined) tunnels.remove(before);
        const tunnel = session.tunnels.get(effect.tunnelId);
        if (tunnel === undefined) return;
        tunnels.add(tunnel);
        this.#options.recovery?.opened(tunnel, session.secretHash);
        return;
      }
      case 'close-endpoint':
        this.#close(session, effect);
        return;
      case 'hold-endpoint':
        if (effect.endpoint.kind !== 'member') endpoints.hold(effect.endpoint, effect.tunnelId, effect.until);
        return;
      case 'release-endpoint':
        if (effect.endpoint.kind === 'member') return;
        endpoints.release(effect.endpoint, effect.tunnelId);
        this.#options.recovery?.closed(effect.tunnelId, effect.endpoint);
        return;
      case 'tunnel-opened':
        this.#tellOpened(session, effect.tunnelId, effect.at);
        return;
      case 'tunnel-closed':
        this.#tellClosed(session, effect.tunnelId, effect.at);
        return;
      case 'replace-connection': {
        const replaced = session.connection;
        // Detached first, so that closing the replaced connection does not count as a loss.
        this.#detach(session, 'the client reconnected');
        replaced?.sendFault(new Fault('CONTROL_REPLACED'));
        replaced?.close(CLOSE_CODES.replaced, 'CONTROL_REPLACED');
        return;
      }
      case 'forget-session':
        if (this.#sessions.get(session.sessionId) !== session) return;
        this.#sessions.delete(session.sessionId);
        this.#options.peers.sessionOver(session.sessionId, 'lost', null);
        this.#room.give(ownerKey(session.owner));
    }
  }

  #close(session: Session, { tunnelId, endpoint }: Extract<SessionEffect, { kind: 'close-endpoint' }>): void {
    const { endpoints, groups, tunnels } = this.#options;
    const listed = tunnels.get(tunnelId);
    const isListed = listed !== undefined && sameEndpoint(listed.endpoint, endpoint);
    if (isListed) tunnels.remove(listed);
    if (endpoint.kind !== 'member') return endpoints.close(endpoint);
    // A member is in its group even if it was never listed, because its session disconnected during the join.
    const member = isListed ? listed : session.tunnels.get(tunnelId);
    if (member?.group?.groupId !== endpoint.groupId) return;
    groups.leave(member, session.state.kind === 'lost' ? session.state.until : null);
    this.#options.recovery?.closed(tunnelId, member.group.endpoint);
  }

  #tellOpened(session: Session, tunnelId: string, at: number): void {
    const tunnel = session.tunnels.get(tunnelId);
    if (tunnel === undefined) return;
    const { sessionId, name, protocol, label, publicUrl, owner, clientAddr, clientName, counters } = tunnel;
    const { keyId } = session;
    const fields = { tunnel_id: tunnelId, session_id: sessionId, name, url: publicUrl };
    this.#options.log.log('info', `tunnel-opened ${ownerKey(owner)}`, fields, 'tunnel opened');
    this.#options.backend.tunnelOpened({
      tunnelId,
      sessionId,
      name,
      protocol,
      label,
      publicUrl,
      owner,
      keyId,
      clientAddr,
      clientName,
      counters,
      at: this.#wallTime(at),
    });
  }

  #tellClosed(session: Session, tunnelId: string, at: number): void {
    const tunnel = session.tunnels.get(tunnelId);
    session.tunnels.delete(tunnelId);
    if (tunnel === undefined) return;
    if (tunnel.group === null) this.#options.policies.forget(tunnel.policy);
    const { requests, bytes } = tunnel.counters;
    const fields = { tunnel_id: tunnelId, session_id: session.sessionId, name: tunnel.name };
    this.#options.log.log('info', `tunnel-closed ${ownerKey(tunnel.owner)}`, fields, 'tunnel closed');
    this.#options.backend.tunnelClosed({ tunnelId, owner: tunnel.owner, requests, bytes, at: this.#wallTime(at) });
  }

  /** Converts to wall-clock time for logs. Session windows use the monotonic clock, so that setting the system clock cannot end them. */
  #wallTime(monotonicMs: number): number {
    const { clock } = this.#options;
    return Math.round(clock.now() - (clock.monotonic() - monotonicMs));
  }
}
