// Guard for tenants' alert URLs, and the warning that a tenant gets about an unusable alert URL at registration.
import { problemOfAddress } from '@tunnel/rules/net';
import { InFlight } from '@tunnel/rules/rate';
import { addressIn, type Clock, type NameLookup, UrlGuard } from '@tunnel/runtime';

/** Maximum time for which a registration waits for the DNS lookup of its alert URL. The URL is checked again before each alert. */
const ALERT_LOOKUP_TIMEOUT_MS = 1000;

export interface AlertUrlsOptions {
  readonly allowPrivate: boolean;
  readonly clock: Clock;
  readonly lookup?: NameLookup | undefined;
}

/** Maximum concurrent DNS lookups for registrations. Above the limit, a registration succeeds without the check. */
const LOOKUPS_AT_ONCE = 64;

export class AlertUrls extends UrlGuard {
  readonly #clock: Clock;
  readonly #lookups = new InFlight({ atOnce: LOOKUPS_AT_ONCE });

  constructor({ allowPrivate, clock, lookup }: AlertUrlsOptions) {
    super({ problemOfAddress: (address) => problemOfAddress(address, allowPrivate), lookup });
    this.#clock = clock;
  }

  /**
   * Returns a warning about an alert URL for the tenant, or null. Delays a registration by at most `withinMs`, and by no more than a
   * second. Because the URL is checked again before each alert, a skipped check is safe.
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
