// Notifies the operator and the tenants that a group has no healthy member left. Best effort: an alert is sent once, is never retried,
// and never delays other work.
import type { SecureContext } from 'node:tls';
import {
  type Clock,
  type Logger,
  lazySecureContext,
  type NameLookup,
  randomId,
  reasonOf,
  requestOnce,
  type Secret,
} from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import { AlertBudgets, type AlertRates } from './alert-budgets.ts';
import { type AlertDestination, AlertLimiter, StartQueue } from './alert-limiter.ts';
import { type AlertMessage, composeAlert, type ZeroHealthyAlert } from './alert-message.ts';
import { type AlertOutcome, AlertOutcomes, type AlertTotals, type DropTotals } from './alert-outcomes.ts';
import { AlertUrls } from './alert-url.ts';

export interface AlertSenderOptions {
  /** Alert URL of the operator. Empty if the operator gets no alerts. */
  readonly operatorUrl: string;
  readonly allowPrivate: boolean;
  /** Secret for signing alerts. Empty if alerts are not signed. */
  readonly secret: Secret;
  readonly regionId: string;
  readonly version?: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly lookup?: NameLookup;
  /** Trusted CA certificates for receivers, instead of the default certificate authorities. */
  readonly ca?: string;
  /** Alert rates that replace the default limits. */
  readonly rates?: AlertRates | undefined;
}

interface Delivery {
  readonly alert: ZeroHealthyAlert;
  readonly message: AlertMessage;
  readonly destination: AlertDestination;
  readonly url: URL;
  /** Members' alert URLs, exactly as configured. Different spellings can mean the same destination. */
  readonly urls: string[];
}

interface End {
  readonly outcome: AlertOutcome;
  readonly fields: object;
}

export class AlertSender {
  /** Guard that checks alert URLs, at registration and before each alert. */
  readonly urls: AlertUrls;
  readonly #options: AlertSenderOptions;
  readonly #operatorUrl: URL | null;
  readonly #outcomes: AlertOutcomes;
  readonly #limiter = new AlertLimiter();
  readonly #budgets: AlertBudgets;
  readonly #starts = new StartQueue();
  readonly #underWay = new Set<AbortController>();
  readonly #trust: () => SecureContext;
  #isClosed = false;

  constructor(options: AlertSenderOptions) {
    this.#options = options;
    this.urls = new AlertUrls(options);
    this.#operatorUrl = options.operatorUrl === '' ? null : new URL(options.operatorUrl);
    if (this.#operatorUrl !== null) this.#operatorUrl.hash = '';
    this.#outcomes = new AlertOutcomes(options.logger, options.clock);
    this.#trust = lazySecureContext(options.ca);
    this.#budgets = new AlertBudgets(options.clock, options.rates);
  }

  get totals(): AlertTotals {
    return this.#outcomes.totals;
  }

  get dropped(): DropTotals {
    return this.#outcomes.dropped;
  }

  /** Starts an alert and returns at once. Results appear in the totals and in the log. */
  send(alert: ZeroHealthyAlert): void {
    const operator = this.#operatorUrl === null ? 0 : 1;
    const tenant = alert.tenantUrls.length;
    if (this.#isClosed || operator + tenant === 0) return;
    const overBudget = this.#budgets.takeAlert(alert);
    if (overBudget !== null) return this.#outcomes.drop(alert, overBudget, { operator, tenant });
    const { secret, regionId, version = 'development', clock } = this.#options;
    const stamp = { id: randomId('msg'), now: clock.now(), secret, userAgent: `tunnel-edge/${version}`, regionId };
    const message = composeAlert(alert, stamp);
    const seen = new Map<string, string[]>();
    if (this.#operatorUrl !== null) {
      const urls: string[] = [];
      seen.set(this.#operatorUrl.href, urls);
      this.#start({ alert, message, destination: 'operator', url: this.#operatorUrl, urls });
    }
    for (const [at, text] of alert.tenantUrls.entries()) {
      // A group can have any number of members, so without a free slot the remaining URLs are not even parsed.
      if (!this.#limiter.hasRoomFor(alert.account)) {
        this.#outcomes.drop(alert, 'slots', { tenant: tenant - at });
        return;
      }
      this.#startTenant(alert, message, text, seen);
    }
  }

  /** Aborts all alerts in progress and stops sending. */
  close(): void {
    this.#isClosed = true;
    for (const delivery of this.#underWay) delivery.abort();
  }

  #startTenant(alert: ZeroHealthyAlert, message: AlertMessage, text: string, seen: Map<string, string[]>): void {
    const reading = this.urls.read(text);
    const key = reading.kind === 'url' ? reading.url.href : text;
    const same = seen.get(key);
    if (same !== undefined) return void same.push(text);
    const urls = [text];
    seen.set(key, urls);
    if (reading.kind === 'url') return this.#start({ alert, message, destination: 'tenant', url: reading.url, urls });
    const { host, reason } = reading;
    this.#outcomes.add({ alert, destination: 'tenant', host, urls, outcome: 'guard-refused', fields: { reason } });
  }

  #start(delivery: Delivery): void {
    const { alert, destination, url, urls } = delivery;
    const release = this.#limiter.acquire(destination, alert.account, url.host);
    if (release === null) return this.#outcomes.drop(alert, 'slots', { [destination]: 1, host: url.host, urls });
    // Requests to the operator's URL have no budget, so that tenants cannot use up the budget of the operator's host.
    const overBudget = destination === 'tenant' ? this.#budgets.takePost(alert.account, url.hostname) : null;
    if (overBudget === null) return void this.#deliver(delivery).finally(release);
    release();
    this.#outcomes.drop(alert, overBudget, { tenant: 1, host: url.host, urls });
  }

  /** Sends a request to a destination and records the result. Never rejects. */
  async #deliver(delivery: Delivery): Promise<void> {
    const { clock } = this.#options;
    const { alert, destination, url, urls } = delivery;
    const deadline = new AbortController();
    const startedAt = clock.monotonic();
    const timer = clock.setTimeout(() => deadline.abort(), EDGE_LIMITS.ALERT_TIMEOUT_MS);
    this.#underWay.add(deadline);
    let end: End;
    try {
      await this.#starts.next();
      end = await this.#attempt(delivery, deadline.signal);
    } catch (error) {
      end = { outcome: 'failed', fields: { reason: reasonOf(error) } };
    }
    if (deadline.signal.aborted && end.outcome === 'failed') {
      end = this.#isClosed
        ? { outcome: 'failed', fields: { reason: 'the edge is stopping' } }
        : { outcome: 'timeout', fields: {} };
    }
    timer.cancel();
    this.#underWay.delete(deadline);
    const fields = { ...end.fields, duration_ms: Math.round(clock.monotonic() - startedAt) };
    this.#outcomes.add({ alert, destination, host: url.host, urls, outcome: end.outcome, fields });
  }

  async #attempt({ destination, url, message }: Delivery, signal: AbortSignal): Promise<End> {
    let addresses: readonly string[] | null = null;
    if (destination === 'tenant') {
      const verdict = await this.urls.pin(url, signal);
      if (verdict.kind !== 'pinned') {
        const outcome = verdict.kind === 'refused' ? 'guard-refused' : 'failed';
        return { outcome, fields: { reason: verdict.reason } };
      }
      addresses = verdict.addresses;
    }
    const { status } = await requestOnce({
      url,
      method: 'POST',
      ...message,
      addresses,
      signal,
      // The response body is not read, because the status is sufficient.
      maxBytes: 0,
      secureContext: this.#trust,
    });
    return { outcome: status >= 200 && status < 300 ? 'delivered' : 'refused-status', fields: { status } };
  }
}
