// Results of alerts: totals for metrics, and log lines that contain the host of a URL and never the rest.

import { type Clock, type Logger, LogLimiter } from '@tunnel/runtime';
import { DROP_REASONS, type DropReason } from './alert-budgets.ts';
import type { AlertDestination } from './alert-limiter.ts';
import type { ZeroHealthyAlert } from './alert-message.ts';

export const ALERT_OUTCOMES = ['delivered', 'refused-status', 'timeout', 'failed', 'guard-refused', 'dropped'] as const;
export type AlertOutcome = (typeof ALERT_OUTCOMES)[number];
/** Number of drops by reason: whole alerts for the reasons `group` and `account`, single requests for all other reasons. */
export type DropTotals = Readonly<Record<DropReason, number>>;
export type AlertTotals = Readonly<Record<AlertDestination, Readonly<Record<AlertOutcome, number>>>>;

export interface AlertEnd {
  readonly alert: ZeroHealthyAlert;
  readonly destination: AlertDestination;
  readonly host: string;
  readonly outcome: AlertOutcome;
  /**
   * Members' alert URLs with this result, exactly as configured. If undefined, the result applies to all URLs without a separate result.
   */
  readonly urls?: readonly string[];
  /** Number of requests with the same result. Default: 1. */
  readonly count?: number;
  readonly fields?: object;
}

/** Number of dropped requests by destination. For the drop of a single request, also its host and the members' URLs for the request. */
interface DroppedPosts {
  readonly operator?: number;
  readonly tenant?: number;
  readonly host?: string;
  readonly urls?: readonly string[];
}

const none = (): Record<AlertOutcome, number> => ({
  delivered: 0,
  'refused-status': 0,
  timeout: 0,
  failed: 0,
  'guard-refused': 0,
  dropped: 0,
});

export class AlertOutcomes {
  readonly #totals = { operator: none(), tenant: none() };
  readonly #dropped = Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as Record<DropReason, number>;
  readonly #log: LogLimiter;

  constructor(logger: Logger, clock: Clock) {
    this.#log = new LogLimiter(logger, () => clock.monotonic());
  }

  get totals(): AlertTotals {
    return this.#totals;
  }

  get dropped(): DropTotals {
    return this.#dropped;
  }

  add({ alert, destination, host, outcome, urls, count = 1, fields = {} }: AlertEnd): void {
    this.#totals[destination][outcome] += count;
    if (urls !== undefined || destination === 'tenant') alert.onEnd?.(urls ?? null, outcome);
    const { groupName: group, label, account } = alert;
    const line = { group, label, destination, host, outcome, ...fields };
    const [level, text] = outcome === 'delivered' ? LINES.delivered : LINES.other;
    this.#log.log(level, `${outcome} ${destination} ${account}`, line, text, count);
  }

  /** Counts and logs a drop. A whole alert counts as a single drop; without a budget for the host or a free slot, each request counts. */
  drop(alert: ZeroHealthyAlert, reason: DropReason, posts: DroppedPosts): void {
    const isWhole = reason === 'group' || reason === 'account';
    const { operator = 0, tenant = 0, host = '', urls } = posts;
    this.#dropped[reason] += isWhole ? 1 : operator + tenant;
    const fields = { reason: `budget of ${reason}` };
    const known = urls === undefined ? {} : { urls };
    const shared = {
      alert,
      host,
      ...known,
      outcome: 'dropped',
      fields: reason === 'slots' ? NO_SLOT : fields,
    } as const;
    if (operator > 0) this.add({ ...shared, destination: 'operator', count: operator });
    if (tenant > 0) this.add({ ...shared, destination: 'tenant', count: tenant });
  }
}

const LINES = { delivered: ['info', 'alert delivered'], other: ['warn', 'alert not delivered'] } as const;
const NO_SLOT = { reason: 'too many alerts are being sent' };
