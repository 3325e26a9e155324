// What became of the alerts: totals for the metrics, and a line for each that names the host and never the rest of a URL.

import type { Clock, Logger } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { AlertDestination } from './alert-limiter.ts';
import type { ZeroHealthyAlert } from './alert-message.ts';

export const ALERT_OUTCOMES = ['delivered', 'refused-status', 'timeout', 'failed', 'guard-refused', 'dropped'] as const;
export type AlertOutcome = (typeof ALERT_OUTCOMES)[number];
export type AlertTotals = Readonly<Record<AlertDestination, Readonly<Record<AlertOutcome, number>>>>;

export interface AlertEnd {
  readonly alert: ZeroHealthyAlert;
  readonly destination: AlertDestination;
  readonly host: string;
  readonly outcome: AlertOutcome;
  /** How many ended like this at once. */
  readonly count?: number;
  readonly fields?: object;
}

const none = (): Record<AlertOutcome, number> => ({
  delivered: 0,
  'refused-status': 0,
  timeout: 0,
  failed: 0,
  'guard-refused': 0,
  dropped: 0,
});

/** These cost the edge nothing, so that their number has no bound; their lines need one. */
const CHEAP: ReadonlySet<AlertOutcome> = new Set<AlertOutcome>(['guard-refused', 'dropped']);

export class AlertOutcomes {
  readonly #totals = { operator: none(), tenant: none() };
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #lastLine = new Map<AlertOutcome, { at: number; unsaid: number }>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  get totals(): AlertTotals {
    return this.#totals;
  }

  add({ alert, destination, host, outcome, count = 1, fields = {} }: AlertEnd): void {
    this.#totals[destination][outcome] += count;
    const unsaid = CHEAP.has(outcome) ? this.#unsaidOf(outcome, count) : 0;
    if (unsaid === null) return;
    const { groupName: group, label } = alert;
    const line = { group, label, destination, host, outcome, ...fields, ...(unsaid > 0 ? { unsaid } : {}) };
    if (outcome === 'delivered') this.#logger.info(line, 'alert delivered');
    else this.#logger.warn(line, 'alert not delivered');
  }

  /** How many the line stands for besides itself; null: too soon for a line. */
  #unsaidOf(outcome: AlertOutcome, count: number): number | null {
    const now = this.#clock.monotonic();
    const last = this.#lastLine.get(outcome);
    if (last !== undefined && now - last.at < EDGE_LIMITS.REFUSAL_LOG_INTERVAL_MS) {
      last.unsaid += count;
      return null;
    }
    this.#lastLine.set(outcome, { at: now, unsaid: 0 });
    return (last?.unsaid ?? 0) + count - 1;
  }
}
