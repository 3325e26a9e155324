// The guard in front of tenants' alert URLs, and what a tenant is told about one at its registration.
import { problemOfAddress } from '@tunnel/rules/net';
import { InFlight } from '@tunnel/rules/rate';
import { addressIn, type Clock, type NameLookup, UrlGuard } from '@tunnel/runtime';

/** a registration waits this long for the name in its alert URL; the alert checks it anyway */
const ALERT_LOOKUP_TIMEOUT_MS = 1000;

export interface AlertUrlsOptions {
  readonly allowPrivate: boolean;
  readonly clock: Clock;
  readonly lookup?: NameLookup | undefined;
}

/** Registrations that wait for the name in their alert URL. Further ones are not warned. */
const LOOKUPS_AT_ONCE = 64;

export class AlertUrls extends UrlGuard {
  readonly #clock: Clock;
  readonly #lookups = new InFlight({ atOnce: LOOKUPS_AT_ONCE });

  constructor({ allowPrivate, clock, lookup }: AlertUrlsOptions) {
    super({ problemOfAddress: (address) => problemOfAddress(address, allowPrivate), lookup });
    this.#clock = clock;
  }

  /**
   * A warning for the tenant, or null. It never holds up a registration for long, and no longer than `withinMs`; the alert
   * is checked in any case.
   */
  async checkAtRegistration(text: string, withinMs: number = ALERT_LOOKUP_TIMEOUT_MS): Promise<string | null> {
    const reading = this.read(text);
    if (reading.kind === 'refused') return warningOf(reading);
    const waitMs = Math.min(withinMs, ALERT_LOOKUP_TIMEOUT_MS);
    if (addressIn(reading.url) !== null || waitMs <= 0 || !this.#lookups.begin()) return null;
    const deadline = new AbortController();
    const timer = this.#clock.setTimeout(() => deadline.abort(), waitMs);
    try {
      const verdict = await this.pin(reading.url, deadline.signal);
      return verdict.kind === 'pinned' || deadline.signal.aborted ? null : warningOf(verdict);
    } finally {
      this.#lookups.end();
      timer.cancel();
    }
  }
}

const warningOf = ({ kind, reason }: { readonly kind: 'refused' | 'unresolved'; readonly reason: string }): string =>
  kind === 'refused' ? `alert webhook rejected: ${reason}` : `alert webhook: ${reason} right now`;
