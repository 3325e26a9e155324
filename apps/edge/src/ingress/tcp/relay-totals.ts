// What the relay has carried and refused since the start, and what is logged of the refusals.
import type { StreamCode } from '@tunnel/protocol';
import type { Logger } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';

/** Why a visitor was turned away: before the stream was asked for, or by what the client answered. */
export type RefusalReason = 'tunnel-limit' | 'address-limit' | 'no-tunnel' | 'no-healthy' | 'no-carrier' | StreamCode;

/** Plain numbers, because they change with every chunk; metrics read them. */
export class RelayTotals {
  requests = 0;
  bytesToClient = 0;
  bytesToVisitor = 0;
  readonly refused = new Map<RefusalReason, number>();

  countRefusal(reason: RefusalReason): void {
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
  }
}

/** Says that visitors are turned away, at most once a second and reason: a flood must not become a flood of lines. */
export class RefusalLog {
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #last = new Map<RefusalReason, { at: number; unsaid: number }>();

  constructor(logger: Logger, now: () => number) {
    this.#logger = logger;
    this.#now = now;
  }

  note(reason: RefusalReason, fields: object, message: string): void {
    const now = this.#now();
    const last = this.#last.get(reason);
    if (last !== undefined && now - last.at < EDGE_LIMITS.REFUSAL_LOG_INTERVAL_MS) {
      last.unsaid += 1;
      return;
    }
    this.#last.set(reason, { at: now, unsaid: 0 });
    const unsaid = last?.unsaid ?? 0;
    this.#logger.warn({ reason, ...fields, ...(unsaid > 0 ? { unsaid } : {}) }, message);
  }
}
