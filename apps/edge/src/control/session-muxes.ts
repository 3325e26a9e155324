// The streams of every session: the set in use, and those of earlier connections, which may still finish.
import { type Carrier, MuxSession, processBudget } from '@tunnel/mux';
import { type StreamReason, WIRE_LIMITS } from '@tunnel/protocol';
import type { Clock, Logger } from '@tunnel/runtime';
import { CarrierTokens } from './carrier-tokens.ts';
import type { Session } from './session.ts';

export interface SessionMuxesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The client broke the protocol of the carriers; its streams are reset already. */
  readonly onViolation: (session: Session, mux: MuxSession, reason: string) => void;
}

export class SessionMuxes {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #onViolation: SessionMuxesOptions['onViolation'];
  readonly #tokens: CarrierTokens<MuxSession>;
  readonly #sessionOf = new Map<MuxSession, Session>();

  constructor(options: SessionMuxesOptions) {
    this.#clock = options.clock;
    this.#logger = options.logger;
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
      now: () => this.#clock.monotonic(),
      capabilities: session.capabilities,
      handlers: {
        onCarrierLost: ({ carrierId, reason, protocolViolation, liveCarriers }) => {
          const fields = { session_id: session.sessionId, carrier: carrierId, reason, live_carriers: liveCarriers };
          if (!protocolViolation) return this.#logger.debug(fields, 'a carrier was lost');
          this.#logger.warn(fields, 'a carrier broke the protocol; its session is closed');
          this.#forget(mux);
          this.#onViolation(session, mux, reason);
        },
        // Carriers that die take their streams with them, so this comes in any case.
        onIdle: () => this.close(mux, FINISHED),
      },
    });
    this.#sessionOf.set(mux, session);
    return mux;
  }

  issueTokens(mux: MuxSession, count: number): string[] {
    return this.#tokens.issue(mux, count);
  }

  /** null: unknown, used before, too old, or of streams that take no more. */
  redeemToken(token: string): MuxSession | null {
    return this.#tokens.redeem(token);
  }

  hasRoom(mux: MuxSession): boolean {
    return mux.openCarriers < WIRE_LIMITS.CARRIERS_PER_SESSION_MAX;
  }

  addCarrier(mux: MuxSession, carrier: Carrier): void {
    const carrierId = mux.addCarrier(carrier);
    const fields = { session_id: this.#sessionOf.get(mux)?.sessionId, carrier: carrierId, kind: carrier.kind };
    this.#logger.debug(fields, 'a carrier was added');
  }

  /** No new streams; those under way finish, as long as their carriers live. */
  retire(mux: MuxSession, why: string): void {
    this.#tokens.revokeAll(mux);
    mux.drain(why);
  }

  /** Resets what is left. */
  close(mux: MuxSession, reason: StreamReason): void {
    this.#forget(mux);
    mux.close(reason);
  }

  closeWhere(isMeant: (session: Session) => boolean, reason: StreamReason): void {
    for (const [mux, session] of [...this.#sessionOf]) if (isMeant(session)) this.close(mux, reason);
  }

  tick(): void {
    this.#tokens.dropExpired();
    const now = this.#clock.monotonic();
    for (const mux of [...this.#sessionOf.keys()]) mux.tick(now);
  }

  #forget(mux: MuxSession): void {
    this.#sessionOf.delete(mux);
    this.#tokens.revokeAll(mux);
  }

  #sum(of: (mux: MuxSession) => number): number {
    let sum = 0;
    for (const mux of this.#sessionOf.keys()) sum += of(mux);
    return sum;
  }
}

const FINISHED: StreamReason = { code: 'cancelled', text: 'the session has ended' };
