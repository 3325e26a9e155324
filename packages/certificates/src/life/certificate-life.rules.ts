// State machine of an automatically ordered certificate: when an order begins, resumes or is retried, and when the certificate is renewed.
// The driver holds the certificate's lease, so no other process sends events during an order.

import { FairShare } from '@tunnel/rules/rate';

/** Pause after the first failure. Four attempts fall into the first hour, where authorities allow five failed validations of a name. */
const CERTIFICATE_RETRY_FIRST_MS = 60_000;
/** Pause after the second failed attempt to get a certificate. */
const CERTIFICATE_RETRY_SECOND_MS = 5 * 60_000;
/** Pause after the third failed attempt to get a certificate. */
const CERTIFICATE_RETRY_THIRD_MS = 30 * 60_000;
/** Pause after the fourth failed attempt to get a certificate. */
const CERTIFICATE_RETRY_FOURTH_MS = 2 * 3_600_000;
/** Pause after the fifth failed attempt to get a certificate. */
const CERTIFICATE_RETRY_FIFTH_MS = 12 * 3_600_000;
/** Pause after every further failed attempt to get a certificate. */
const CERTIFICATE_RETRY_LAST_MS = 24 * 3_600_000;
/** Maximum pause between attempts if less than a tenth of the certificate's lifetime is left. */
const CERTIFICATE_RETRY_EMERGENCY_MS = 3_600_000;
/** Maximum Retry-After that is honored. The longest rate limit window of an authority is a week. */
const CERTIFICATE_RETRY_AFTER_MAX_MS = 8 * 24 * 3_600_000;
/** Time for which an order is resumed; afterwards a new order is created. */
const CERTIFICATE_ORDER_KEPT_MS = 24 * 3_600_000;
/** Default interval of requests for a certificate's renewal information (RFC 9773). */
const CERTIFICATE_INFO_EVERY_MS = 6 * 3_600_000;
/** Minimum interval of requests for a certificate's renewal information. */
const CERTIFICATE_INFO_MIN_MS = 60_000;
/** Maximum interval of requests for a certificate's renewal information. */
const CERTIFICATE_INFO_MAX_MS = 24 * 3_600_000;
/** A certificate with a shorter lifetime is renewed after half instead of two thirds of it, to leave time for failures. */
const CERTIFICATE_SHORT_LIFE_MS = 10 * 24 * 3_600_000;
/** Interval of warnings about a certificate that is about to expire. */
const CERTIFICATE_WARN_EVERY_MS = 24 * 3_600_000;

export interface CertificateDates {
  readonly notBefore: number;
  readonly notAfter: number;
}

/** Period in which the authority suggests to renew a certificate (RFC 9773). */
export interface RenewalWindow {
  readonly start: number;
  readonly end: number;
}

interface OpenOrder {
  /** URL of the open order. Null if the order was about to be created: the authority may know it, but another order does no harm. */
  readonly url: string | null;
  /** Time after which the open order is given up and a new one is created. */
  readonly until: number;
}

/** Stored state of a certificate, as plain values. Times are wall clock times. */
export interface CertificateLife {
  readonly issued: CertificateDates | null;
  readonly order: OpenOrder | null;
  /** Number of failed attempts in a row to get the certificate. */
  readonly failures: number;
  /** Number of rejected validations, which selects the next challenge type. */
  readonly refusals: number;
  /** Earliest time of the next attempt to get the certificate. */
  readonly tryAt: number;
  /** Time at which the certificate's renewal starts. Null without an issued certificate. */
  readonly renewAt: number | null;
  readonly window: RenewalWindow | null;
  /** Time of the next renewal information request. Null without an issued certificate. */
  readonly infoAt: number | null;
  /** True if the authority reports the certificate as replaced. Then the next order omits `replaces`. */
  readonly wasReplaced: boolean;
  readonly lastError: string | null;
  /** Time of the last warning that the certificate is about to expire. */
  readonly warnedAt: number | null;
}

export type CertificateState = 'none' | 'ordering' | 'valid' | 'renewing' | 'failing';

/**
 * `refused`: the order has failed. `gone`: the authority no longer knows the order. `away`: no response, or not in time. After `away` and
 * `rate-limited` an existing order is resumed.
 */
export type OrderFailure = 'refused' | 'gone' | 'away' | 'rate-limited' | 'already-replaced';

export type CertificateEvent =
  | { readonly kind: 'time-passed' }
  /** The operator or owner requested a renewal: now, regardless of earlier failures. */
  | { readonly kind: 'renewal-asked' }
  /** Renewal information should be requested. Sent after a start, because it may be outdated. */
  | { readonly kind: 'info-wanted'; readonly at: number }
  /** The order has to wait, because the server's budget of orders is exhausted. */
  | { readonly kind: 'held-back'; readonly until: number }
  | { readonly kind: 'order-begun'; readonly url: string; readonly expiresAt: number | null }
  | {
      readonly kind: 'order-failed';
      readonly why: OrderFailure;
      readonly reason: string;
      readonly retryAfterMs: number | null;
    }
  | ({ readonly kind: 'issued' } & CertificateDates)
  /** The authority's renewal information was received. `window` is null if the authority has none. */
  | { readonly kind: 'renewal-info'; readonly window: RenewalWindow | null; readonly retryAfterMs: number | null };

export type CertificateEffect =
  | { readonly kind: 'begin-order'; readonly replaces: boolean }
  | { readonly kind: 'resume-order'; readonly url: string }
  | { readonly kind: 'ask-renewal-info' }
  | { readonly kind: 'warn'; readonly endsAt: number };

export const NEW_CERTIFICATE: CertificateLife = {
  issued: null,
  order: null,
  failures: 0,
  refusals: 0,
  tryAt: 0,
  renewAt: null,
  window: null,
  infoAt: null,
  wasReplaced: false,
  lastError: null,
  warnedAt: null,
};

type Step = readonly [CertificateLife, readonly CertificateEffect[]];

/** Computes a certificate's next state and effects. `chance` in [0, 1) spreads certificates that began or failed together. */
export const transitionCertificate = (
  life: CertificateLife,
  event: CertificateEvent,
  now: number,
  chance: number,
): Step => {
  switch (event.kind) {
    case 'time-passed':
      return passTime(life, now);
    case 'renewal-asked':
      return [{ ...life, tryAt: now, renewAt: life.issued === null ? null : now, failures: 0 }, []];
    case 'info-wanted':
      return [life.infoAt === null ? life : { ...life, infoAt: Math.min(life.infoAt, event.at) }, []];
    case 'held-back':
      return [{ ...life, order: null, tryAt: Math.max(event.until, now) }, []];
    case 'order-begun': {
      const kept = now + CERTIFICATE_ORDER_KEPT_MS;
      return [{ ...life, order: { url: event.url, until: Math.min(event.expiresAt ?? kept, kept) } }, []];
    }
    case 'order-failed':
      return [failOrder(life, event, now, chance), []];
    case 'issued':
      return [startOver(event, now), []];
    case 'renewal-info':
      return [hearOfRenewal(life, event, now, chance), []];
  }
};

const passTime = (life: CertificateLife, now: number): Step => {
  const effects: CertificateEffect[] = [];
  let next = life;
  if (now >= warnAt(life)) {
    next = { ...next, warnedAt: now };
    effects.push({ kind: 'warn', endsAt: life.issued?.notAfter ?? now });
  }
  if (now >= orderAt(life)) {
    const { order } = life;
    if (order !== null && order.url !== null && now < order.until) {
      return [next, [...effects, { kind: 'resume-order', url: order.url }]];
    }
    next = { ...next, order: { url: null, until: now + CERTIFICATE_ORDER_KEPT_MS } };
    return [next, [...effects, { kind: 'begin-order', replaces: life.issued !== null && !life.wasReplaced }]];
  }
  if (now >= infoAt(life)) effects.push({ kind: 'ask-renewal-info' });
  return [next, effects];
};

const startOver = ({ notBefore, notAfter }: CertificateDates, now: number): CertificateLife => {
  const issued = { notBefore, notAfter };
  return { ...NEW_CERTIFICATE, issued, renewAt: renewalByRule(issued), infoAt: now };
};

type Failed = Extract<CertificateEvent, { kind: 'order-failed' }>;

const failOrder = (life: CertificateLife, event: Failed, now: number, chance: number): CertificateLife => {
  // The order is repeated without `replaces` only once: if the authority repeats the error, it counts as a refusal.
  if (event.why === 'already-replaced' && !life.wasReplaced) {
    return { ...life, order: null, wasReplaced: true, tryAt: now };
  }
  const keepsOrder = (event.why === 'away' || event.why === 'rate-limited') && life.order?.url != null;
  const failures = life.failures + 1;
  const asked = Math.min(event.retryAfterMs ?? 0, CERTIFICATE_RETRY_AFTER_MAX_MS);
  const ownPace = retryDelayMs(failures, now >= emergencyAt(life)) * (1 + chance * RETRY_SPREAD);
  return {
    ...life,
    order: keepsOrder ? life.order : null,
    failures,
    refusals: life.refusals + (event.why === 'refused' ? 1 : 0),
    tryAt: Math.round(now + Math.max(asked, ownPace)),
    lastError: event.reason,
  };
};

type Info = Extract<CertificateEvent, { kind: 'renewal-info' }>;

const hearOfRenewal = (life: CertificateLife, event: Info, now: number, chance: number): CertificateLife => {
  const { window } = event;
  if (life.issued === null) return life;
  const infoAt = now + infoDelayMs(event.retryAfterMs, chance);
  if (window === null || window.end <= window.start) return { ...life, infoAt };
  // The time is kept while the window is unchanged. If it were drawn at every request, the earliest time would win.
  if (life.window?.start === window.start && life.window.end === window.end) return { ...life, infoAt };
  const renewAt = Math.round(window.start + chance * (window.end - window.start));
  return { ...life, infoAt, window: { start: window.start, end: window.end }, renewAt };
};

const RETRY_SPREAD = 0.1;
const INFO_SPREAD = 0.1;

const RETRY_DELAYS_MS = [
  CERTIFICATE_RETRY_FIRST_MS,
  CERTIFICATE_RETRY_SECOND_MS,
  CERTIFICATE_RETRY_THIRD_MS,
  CERTIFICATE_RETRY_FOURTH_MS,
  CERTIFICATE_RETRY_FIFTH_MS,
];

const retryDelayMs = (failures: number, isEmergency: boolean): number => {
  const delayMs = RETRY_DELAYS_MS[failures - 1] ?? CERTIFICATE_RETRY_LAST_MS;
  return isEmergency ? Math.min(delayMs, CERTIFICATE_RETRY_EMERGENCY_MS) : delayMs;
};

const infoDelayMs = (retryAfterMs: number | null, chance: number): number => {
  const min = CERTIFICATE_INFO_MIN_MS;
  const max = CERTIFICATE_INFO_MAX_MS;
  if (retryAfterMs !== null) return Math.min(max, Math.max(min, retryAfterMs));
  return Math.round(CERTIFICATE_INFO_EVERY_MS * (1 - INFO_SPREAD + 2 * INFO_SPREAD * chance));
};

/** Computes the start of renewal from the certificate's lifetime, because authorities choose and change the lifetime. */
const renewalByRule = ({ notBefore, notAfter }: CertificateDates): number => {
  const lifeMs = notAfter - notBefore;
  const share = lifeMs < CERTIFICATE_SHORT_LIFE_MS ? 1 / 2 : 2 / 3;
  return Math.round(notBefore + lifeMs * share);
};

/** Time from which less than a tenth of the certificate's lifetime is left. */
const emergencyAt = ({ issued }: CertificateLife): number =>
  issued === null ? Number.POSITIVE_INFINITY : issued.notAfter - (issued.notAfter - issued.notBefore) / 10;

/** A renewal starts before the last tenth of the lifetime, regardless of the authority's window. */
const orderAt = (life: CertificateLife): number => {
  if (life.issued === null || life.order !== null) return life.tryAt;
  return Math.max(life.tryAt, Math.min(life.renewAt ?? 0, emergencyAt(life)));
};

const infoAt = (life: CertificateLife): number =>
  life.issued === null || life.order !== null || life.infoAt === null ? Number.POSITIVE_INFINITY : life.infoAt;

const warnAt = (life: CertificateLife): number => {
  if (life.failures === 0) return Number.POSITIVE_INFINITY;
  const again = life.warnedAt === null ? 0 : life.warnedAt + CERTIFICATE_WARN_EVERY_MS;
  return Math.max(emergencyAt(life), again);
};

/** Time of the next transition of the certificate. */
export const certificateDueAt = (life: CertificateLife): number =>
  Math.ceil(Math.min(orderAt(life), infoAt(life), warnAt(life)));

export const certificateState = (life: CertificateLife, now: number): CertificateState => {
  const waits = life.failures > 0 && now < life.tryAt;
  if (life.issued === null) {
    if (waits) return 'failing';
    return life.order === null ? 'none' : 'ordering';
  }
  if (life.failures > 0 && now >= emergencyAt(life)) return 'failing';
  return life.order !== null || life.failures > 0 || now >= orderAt(life) ? 'renewing' : 'valid';
};

/** Limits of certificate orders in a sliding window. */
export interface OrderBudgetRules {
  readonly max: number;
  readonly windowMs: number;
  /** Maximum orders per account in the window. Undefined: the whole budget. */
  readonly perAccount?: number;
}

/** A certificate order counted for an account. Older versions stored only the time. */
export type BudgetEntry = number | { readonly at: number; readonly account: string };

export type BudgetAnswer =
  | { readonly kind: 'taken'; readonly entries: readonly BudgetEntry[] }
  /** The budget of certificate orders is used up. `isWhole`: for every account. */
  | { readonly kind: 'empty'; readonly until: number; readonly isWhole: boolean };

/** `entries` are oldest first. The operator's few names (`account` null) never wait and are not counted. */
export const takeFromBudget = (
  entries: readonly BudgetEntry[],
  { max, windowMs, perAccount = max }: OrderBudgetRules,
  now: number,
  account: string | null,
): BudgetAnswer => {
  // A future entry was written before the clock was set back. It would block forever.
  const recent = entries.filter((entry) => atOf(entry) > now - windowMs && atOf(entry) <= now);
  if (account === null) return { kind: 'taken', entries: recent };
  const shares = new FairShare({ limit: max, perHolder: perAccount });
  for (const entry of recent) shares.take(accountOf(entry));
  if (recent.length >= max) return { kind: 'empty', until: endOf(recent, max) + windowMs, isWhole: true };
  if (shares.refusal(account) === 'holder-full') {
    const own = recent.filter((entry) => accountOf(entry) === account);
    return { kind: 'empty', until: endOf(own, perAccount) + windowMs, isWhole: false };
  }
  return { kind: 'taken', entries: [...recent, { at: now, account }] };
};

const atOf = (entry: BudgetEntry): number => (typeof entry === 'number' ? entry : entry.at);

const accountOf = (entry: BudgetEntry): string => (typeof entry === 'number' ? '' : entry.account);

/** Time of the entry that must expire before fewer than `max` entries are left. */
const endOf = (entries: readonly BudgetEntry[], max: number): number => atOf(entries[entries.length - max] ?? 0);
