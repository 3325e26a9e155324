// The guard in front of tenants' alert URLs, and what a tenant is told about one at its registration.
import { problemOfAddress } from '@tunnel/rules/net';
import { addressIn, type Clock, type NameLookup, UrlGuard } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

export interface AlertUrlsDeps {
  readonly allowPrivate: boolean;
  readonly clock: Clock;
  readonly lookup?: NameLookup | undefined;
}

export class AlertUrls extends UrlGuard {
  readonly #clock: Clock;
  #checksUnderWay = 0;

  constructor({ allowPrivate, clock, lookup }: AlertUrlsDeps) {
    super({ problemOfAddress: (address) => problemOfAddress(address, allowPrivate), lookup });
    this.#clock = clock;
  }

  /**
   * A warning for the tenant, or null. It never holds up a registration for long, and no longer than `withinMs`; the alert
   * is checked in any case.
   */
  async checkAtRegistration(
    text: string,
    withinMs: number = EDGE_LIMITS.ALERT_LOOKUP_TIMEOUT_MS,
  ): Promise<string | null> {
    const reading = this.read(text);
    if (reading.kind === 'refused') return warningOf(reading);
    const waitMs = Math.min(withinMs, EDGE_LIMITS.ALERT_LOOKUP_TIMEOUT_MS);
    if (addressIn(reading.url) !== null || waitMs <= 0 || this.#checksUnderWay >= EDGE_LIMITS.ALERT_LOOKUPS_AT_ONCE)
      return null;
    const deadline = new AbortController();
    const timer = this.#clock.setTimeout(() => deadline.abort(), waitMs);
    this.#checksUnderWay += 1;
    try {
      const verdict = await this.pin(reading.url, deadline.signal);
      return verdict.kind === 'pinned' || deadline.signal.aborted ? null : warningOf(verdict);
    } finally {
      this.#checksUnderWay -= 1;
      timer.cancel();
    }
  }
}

const warningOf = ({ kind, reason }: { readonly kind: 'refused' | 'unresolved'; readonly reason: string }): string =>
  kind === 'refused' ? `alert webhook refused: ${reason}` : `alert webhook: ${reason} at present`;
