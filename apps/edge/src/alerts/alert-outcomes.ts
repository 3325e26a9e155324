// What became of the alerts: totals for the metrics, and a line for each that names the host and never the rest of a URL.

import { type Clock, type Logger, LogLimiter } from '@tunnel/runtime';
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
  readonly #limited: LogLimiter;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#limited = new LogLimiter(logger, () => clock.monotonic());
  }

  get totals(): AlertTotals {
    return this.#totals;
  }

  add({ alert, destination, host, outcome, count = 1, fields = {} }: AlertEnd): void {
    this.#totals[destination][outcome] += count;
    const { groupName: group, label } = alert;
    const line = { group, label, destination, host, outcome, ...fields };
    if (CHEAP.has(outcome)) return this.#limited.log('warn', outcome, line, 'alert not delivered', count);
    if (outcome === 'delivered') this.#logger.info(line, 'alert delivered');
    else this.#logger.warn(line, 'alert not delivered');
  }
}
