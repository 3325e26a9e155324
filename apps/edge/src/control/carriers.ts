// Carriers of all sessions: single-use tokens to authenticate a carrier, the HTTP upgrade, and the muxes with the streams of each session.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Fault } from '@tunnel/errors';
import {
  type Carrier,
  createCarrier,
  isSecured,
  MuxSession,
  processBudget,
  type ReportInternalError,
} from '@tunnel/mux';
import { CARRIER_PROTOCOL, carrierTagOf, type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import { type Owner, ownerKey } from '@tunnel/rules/tunnels';
import { type Clock, type LogLimiter, randomToken, sha256Hex } from '@tunnel/runtime';
import type { PeerRelays } from '../ingress/p2p/peer-relays.ts';
import { refuseUpgrade, refuseWithFault } from './control-server.ts';
import type { DatagramPaths } from './datagram-paths.ts';
import type { Session } from './session.ts';

/** Lifetime of a carrier token. Clients dial immediately after receiving a token, so older tokens are rejected. */
export const CARRIER_TOKEN_LIFE_MS = 30_000;

const SWITCHING = [
  'HTTP/1.1 101 Switching Protocols',
  'Connection: Upgrade',
  `Upgrade: ${CARRIER_PROTOCOL}`,
  '\r\n',
].join('\r\n');

/**
 * Accepts a carrier: a request with `Upgrade: tunnel-carrier/1` and a single-use token, answered with 101 and followed by frames. `admit`
 * is called once the owner is known.
 */
export const upgradeCarrier = (
  muxes: SessionMuxes,
  admit: (owner: Owner) => Fault | null,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
): void => {
  if (request.headers.upgrade?.toLowerCase() !== CARRIER_PROTOCOL) {
    return refuseUpgrade(socket, 426, `this path expects ${CARRIER_PROTOCOL}`);
  }
  if (request.method !== 'GET') return refuseUpgrade(socket, 400, 'carriers must start with GET');
  if (isSecured(socket) && socket.getProtocol() !== 'TLSv1.3') {
    return refuseUpgrade(socket, 426, 'carriers need TLS 1.3');
  }
  const token = /^Bearer ([\w-]{1,200})$/i.exec(request.headers.authorization ?? '')?.[1];
  const mux = token === undefined ? null : muxes.redeemToken(token);
  if (mux === null) return refuseUpgrade(socket, 401, new Fault('CARRIER_TOKEN_INVALID').message);
  if (!muxes.hasRoom(mux)) {
    const limit = WIRE_LIMITS.CARRIERS_PER_SESSION_MAX;
    return refuseUpgrade(socket, 429, new Fault('CARRIER_LIMIT', { limit }).message);
  }
  const refusal = admit(muxes.ownerOf(mux));
  if (refusal !== null) return refuseWithFault(socket, refusal);
  socket.write(SWITCHING);
  muxes.addCarrier(mux, createCarrier(socket, head), carrierTagOf(sha256Hex(token ?? '')));
};

interface SessionMuxesOptions {
  readonly clock: Clock;
  readonly log: LogLimiter;
  readonly report: ReportInternalError;
  /** UDP paths of client sessions, used in addition to carriers. */
  readonly paths: DatagramPaths;
  /** Receives streams opened by clients, for p2p tunnels. */
  readonly relays: Pick<PeerRelays, 'carry'>;
  /** Called when a client has violated the carrier protocol. The streams of the mux are reset already. */
  readonly onViolation: (session: Session, mux: MuxSession, reason: string) => void;
}

/** Muxes of all sessions: the current mux of each session, and muxes of earlier connections with streams still finishing. */
export class SessionMuxes {
  readonly #clock: Clock;
  readonly #log: LogLimiter;
  readonly #report: ReportInternalError;
  readonly #paths: DatagramPaths;
  readonly #relays: SessionMuxesOptions['relays'];
  readonly #onViolation: SessionMuxesOptions['onViolation'];
  readonly #tokens: CarrierTokens<MuxSession>;
  readonly #sessionOf = new Map<MuxSession, Session>();

  constructor(options: SessionMuxesOptions) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#report = options.report;
    this.#paths = options.paths;
    this.#relays = options.relays;
    this.#onViolation = options.onViolation;
    this.#tokens = new CarrierTokens(options.clock);
  }

  get carriers(): number {
    return this.#sum((mux) => mux.openCarriers);
  }

  get streams(): number {
    return this.#sum((mux) => mux.liveStreams);
  }

  open(session: Session): MuxSession {
    const mux: MuxSession = new MuxSession({
      role: 'edge',
      budget: processBudget(),
      clock: this.#clock,
      capabilities: session.capabilities,
      handlers: {
        onStream: (stream, head) => this.#relays.carry(session.sessionId, stream, head),
        onCarrierLost: ({ carrierId, reason, protocolViolation, liveCarriers }) => {
          const fields = { session_id: session.sessionId, carrier: carrierId, reason, live_carriers: liveCarriers };
          const who = ownerKey(session.owner);
          if (!protocolViolation) return this.#log.log('debug', `carrier-lost ${who}`, fields, 'carrier lost');
          const text = 'carrier violated the protocol; session closed';
          this.#log.log('warn', `carrier-protocol ${who}`, fields, text);
          this.#forget(mux);
          this.#onViolation(session, mux, reason);
        },
        report: this.#report,
        // The mux always becomes idle eventually, because streams end with their carriers.
        onIdle: () => this.close(mux, FINISHED),
      },
    });
    this.#sessionOf.set(mux, session);
    this.#paths.open(mux);
    return mux;
  }

  /** Returns the session of a mux, or null if the mux has been closed. */
  sessionOf(mux: MuxSession): Session | null {
    return this.#sessionOf.get(mux) ?? null;
  }

  issueTokens(mux: MuxSession, count: number): string[] {
    return this.#tokens.issue(mux, count);
  }

  /** Redeems a token. Returns null if the token is unknown, used or expired, or if the mux accepts no more carriers. */
  redeemToken(token: string): MuxSession | null {
    return this.#tokens.redeem(token);
  }

  /** Returns the owner of a mux. Only for muxes of a redeemed token: closing a mux revokes its tokens. */
  ownerOf(mux: MuxSession): Owner {
    return this.#sessionOf.get(mux)?.owner ?? { kind: 'operator' };
  }

  hasRoom(mux: MuxSession): boolean {
    return mux.openCarriers < WIRE_LIMITS.CARRIERS_PER_SESSION_MAX;
  }

  addCarrier(mux: MuxSession, carrier: Carrier, tag: string): void {
    const carrierId = mux.addCarrier(carrier, 0, tag);
    const session = this.#sessionOf.get(mux);
    if (session === undefined) return;
    const fields = { session_id: session.sessionId, carrier: carrierId, kind: carrier.kind };
    this.#log.log('debug', `carrier-added ${ownerKey(session.owner)}`, fields, 'carrier added');
  }

  /** Rejects new streams on a client's mux. Open streams finish while their carriers live. */
  retire(mux: MuxSession, why: string): void {
    this.#tokens.revokeAll(mux);
    // Ends the UDP path immediately: the client continues with new keys or not at all. Open flows finish on their carriers.
    this.#paths.end(mux);
    mux.drain(why);
  }

  /** Closes a client's mux and resets its remaining streams. */
  close(mux: MuxSession, reason: StreamReason): void {
    this.#forget(mux);
    mux.close(reason);
  }

  /** Resets the streams of a tunnel, including streams on retired muxes of the session. */
  resetTunnel(session: Session, tunnelId: string, reason: StreamReason): void {
    for (const [mux, owner] of [...this.#sessionOf]) if (owner === session) mux.resetTunnel(tunnelId, reason);
  }

  closeWhere(isMeant: (session: Session) => boolean, reason: StreamReason): void {
    for (const [mux, session] of [...this.#sessionOf]) if (isMeant(session)) this.close(mux, reason);
  }

  tick(): void {
    this.#tokens.dropExpired();
    const now = this.#clock.monotonic();
    for (const mux of this.#sessionOf.keys()) mux.tick(now);
  }

  #forget(mux: MuxSession): void {
    this.#sessionOf.delete(mux);
    this.#tokens.revokeAll(mux);
    this.#paths.end(mux);
  }

  #sum(of: (mux: MuxSession) => number): number {
    let sum = 0;
    for (const mux of this.#sessionOf.keys()) sum += of(mux);
    return sum;
  }
}

const FINISHED: StreamReason = { code: 'cancelled', text: 'the session has ended' };

interface Ticket<T> {
  readonly holder: T;
  readonly until: number;
}

/** Single-use tokens. Only hashes are stored, for a short time and in a limited number. */
export class CarrierTokens<T extends object> {
  readonly #clock: Clock;
  /** Tickets by token hash, so that lookup time reveals nothing about a token. Sorted by age, because all tokens have the same lifetime. */
  readonly #tickets = new Map<string, Ticket<T>>();
  readonly #hashesOf = new Map<T, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#tickets.size;
  }

  /** Issues carrier tokens. Beyond the holder's maximum, the oldest tokens become invalid. */
  issue(holder: T, count: number): string[] {
    const hashes = this.#hashesOf.get(holder) ?? new Set<string>();
    this.#hashesOf.set(holder, hashes);
    const until = this.#clock.monotonic() + CARRIER_TOKEN_LIFE_MS;
    const tokens = Array.from({ length: Math.min(count, WIRE_LIMITS.CARRIER_TOKENS_OUTSTANDING_MAX) }, () =>
      randomToken(),
    );
    for (const token of tokens) {
      const hash = sha256Hex(token);
      this.#tickets.set(hash, { holder, until });
      hashes.add(hash);
    }
    for (const hash of hashes) {
      if (hashes.size <= WIRE_LIMITS.CARRIER_TOKENS_OUTSTANDING_MAX) break;
      this.#drop(hash);
    }
    return tokens;
  }

  /** Redeems a token once and returns its holder. Returns null if the token is unknown or expired. */
  redeem(token: string): T | null {
    const hash = sha256Hex(token);
    const ticket = this.#tickets.get(hash);
    if (ticket === undefined) return null;
    this.#drop(hash);
    return this.#clock.monotonic() < ticket.until ? ticket.holder : null;
  }

  revokeAll(holder: T): void {
    for (const hash of this.#hashesOf.get(holder) ?? []) this.#tickets.delete(hash);
    this.#hashesOf.delete(holder);
  }

  dropExpired(): void {
    const now = this.#clock.monotonic();
    for (const [hash, ticket] of this.#tickets) {
      if (now < ticket.until) return;
      this.#drop(hash);
    }
  }

  #drop(hash: string): void {
    const ticket = this.#tickets.get(hash);
    this.#tickets.delete(hash);
    if (ticket === undefined) return;
    const hashes = this.#hashesOf.get(ticket.holder);
    hashes?.delete(hash);
    if (hashes?.size === 0) this.#hashesOf.delete(ticket.holder);
  }
}
