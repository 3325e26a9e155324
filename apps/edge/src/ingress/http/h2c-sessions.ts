// Connections to local services that speak HTTP/2: shared by the calls of a tunnel, few, and closed when nobody needs them.
import { Fault } from '@tunnel/errors';
import { EDGE_LIMITS } from '../../limits.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import { H2cSession, type H2cTaker } from './h2c-session.ts';

export interface H2cContext {
  readonly now: () => number;
  onBytes(tunnel: Tunnel, toClient: number, toVisitor: number): void;
}

interface Pool {
  tunnel: Tunnel;
  sessions: H2cSession[];
}

export class H2cSessions {
  readonly #context: H2cContext;
  readonly #pools = new Map<string, Pool>();

  constructor(context: H2cContext) {
    this.#context = context;
  }

  /** Exactly one of the taker's answers comes, at once or later. */
  take(tunnel: Tunnel, taker: H2cTaker): void {
    const pool = this.#poolOf(tunnel);
    const { mux } = tunnel.session;
    if (mux === null) {
      taker.onNotConnected(new Fault('TUNNEL_AWAY'));
      return;
    }
    const usable = pool.sessions.filter((session) => session.mux === mux && session.takesCalls);
    const free = leastLoaded(usable.filter((session) => session.hasRoom));
    if (free !== null) free.take(taker);
    else if (usable.length < EDGE_LIMITS.H2C_SESSIONS_PER_TUNNEL) this.#open(pool, mux, taker);
    // node lets what is over the service's bound wait for its turn.
    else leastLoaded(usable)?.take(taker);
  }

  #poolOf(tunnel: Tunnel): Pool {
    const pool = this.#pools.get(tunnel.tunnelId) ?? { tunnel, sessions: [] };
    // A tunnel that was registered again has the same id and another session.
    pool.tunnel = tunnel;
    this.#pools.set(tunnel.tunnelId, pool);
    return pool;
  }

  #open(pool: Pool, mux: H2cSession['mux'], taker: H2cTaker): void {
    const { tunnel } = pool;
    const session = new H2cSession({
      tunnelId: tunnel.tunnelId,
      mux,
      now: this.#context.now,
      onBytes: (toClient, toVisitor) => {
        tunnel.counters.bytes += toClient + toVisitor;
        this.#context.onBytes(tunnel, toClient, toVisitor);
      },
      onExcess: (excess) => this.take(tunnel, excess),
    });
    pool.sessions.push(session);
    session.take(taker);
    session.start();
  }

  /** Once a second. */
  sweep(nowMs: number): void {
    for (const [tunnelId, pool] of this.#pools) {
      const current = pool.tunnel.session.mux;
      pool.sessions = pool.sessions.filter((session) => session.isKept(nowMs, session.mux === current));
      if (pool.sessions.length === 0) this.#pools.delete(tunnelId);
    }
  }

  close(): void {
    for (const pool of this.#pools.values()) for (const session of pool.sessions) session.close();
    this.#pools.clear();
  }
}

const leastLoaded = (sessions: readonly H2cSession[]): H2cSession | null => {
  let best: H2cSession | null = null;
  for (const session of sessions) if (best === null || session.load < best.load) best = session;
  return best;
};
