// Says that visitors are turned away, at most once a second and reason: a flood must not become a flood of lines.

import type { Logger } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { RefusalReason } from './relay-totals.ts';

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
