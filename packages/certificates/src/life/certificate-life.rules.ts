// The life of one certificate that is ordered by itself: when an order begins, is taken up again, is tried later; when it is renewed.
// Whoever drives it holds the certificate's lease: while an order runs nobody else sends an event.

import { Shares } from '@tunnel/rules/rate';

/** pause after the first failed try: four tries in the first hour, where an authority allows five refused validations of a name */
const CERTIFICATE_RETRY_FIRST_MS = 60_000;
/** after the second */
const CERTIFICATE_RETRY_SECOND_MS = 5 * 60_000;
/** after the third */
const CERTIFICATE_RETRY_THIRD_MS = 30 * 60_000;
/** after the fourth */
const CERTIFICATE_RETRY_FOURTH_MS = 2 * 3_600_000;
/** after the fifth */
const CERTIFICATE_RETRY_FIFTH_MS = 12 * 3_600_000;
/** after each further one */
const CERTIFICATE_RETRY_LAST_MS = 24 * 3_600_000;
/** at most that when less than a tenth of the certificate’s life is left */
const CERTIFICATE_RETRY_EMERGENCY_MS = 3_600_000;
/** an authority’s Retry-After is taken at its word up to here; its longest window is a week */
const CERTIFICATE_RETRY_AFTER_MAX_MS = 8 * 24 * 3_600_000;
/** an order that was begun is taken up again for so long; then a new one is made */
const CERTIFICATE_ORDER_KEPT_MS = 24 * 3_600_000;
/** how often an authority is asked when it wants a certificate renewed, unless it says (RFC 9773) */
const CERTIFICATE_INFO_EVERY_MS = 6 * 3_600_000;
/** and not more often, whatever it says */
const CERTIFICATE_INFO_MIN_MS = 60_000;
/** nor less often */
const CERTIFICATE_INFO_MAX_MS = 24 * 3_600_000;
/** with a shorter life it is renewed at a half instead of two thirds of it: too little would be left for failures */
const CERTIFICATE_SHORT_LIFE_MS = 10 * 24 * 3_600_000;
/** Time between two warnings about a certificate that is about to expire. */
const CERTIFICATE_WARN_EVERY_MS = 24 * 3_600_000;

export interface CertificateDates {
  readonly notBefore: number;
  readonly notAfter: number;
}

/** When the authority would like to see it renewed (RFC 9773). */
export interface RenewalWindow {
  readonly start: number;
  readonly end: number;
}

interface OpenOrder {
  /** null: it was about to be made. Whether the authority has heard of it nobody knows; another one does no harm. */
  readonly url: string | null;
  /** From here on a new one is made. */
  readonly until: number;
}

/** All that is to be kept of it; plain values, to be written down. Times are of the wall clock. */
export interface CertificateLife {
  readonly issued: CertificateDates | null;
  readonly order: OpenOrder | null;
  /** Tries in a row that failed. */
  readonly failures: number;
  /** Of validations that were refused: which kind of challenge comes next. */
  readonly refusals: number;
  /** No try before that. */
  readonly tryAt: number;
  /** With something issued: when its renewal begins. */
  readonly renewAt: number | null;
  readonly window: RenewalWindow | null;
  /** With something issued: when the authority is asked about the renewal. */
  readonly infoAt: number | null;
  /** The authority says that this one has been replaced: the next order says nothing of it. */
  readonly wasReplaced: boolean;
  readonly lastError: string | null;
  /** When somebody was last told that it is about to end. */
  readonly warnedAt: number | null;
}

export type CertificateState = 'none' | 'ordering' | 'valid' | 'renewing' | 'failing';

/**
 * `refused`: the order has failed. `gone`: the authority does not know it any more. `away`: no answer, or none in time. `rate-limited`, and
 * these two with an order that was begun: that one is taken up again.
 */
export type OrderFailure = 'refused' | 'gone' | 'away' | 'rate-limited' | 'already-replaced';

export type CertificateEvent =
  | { readonly kind: 'time-passed' }
  /** By hand: now, whatever failed before. */
  | { readonly kind: 'renewal-asked' }
  /** Whoever keeps it has started: much may have been said about its renewal since the last look. */
  | { readonly kind: 'info-wanted'; readonly at: number }
  /** Our own budget of orders is used up. */
  | { readonly kind: 'held-back'; readonly until: number }
  | { readonly kind: 'order-begun'; readonly url: string; readonly expiresAt: number | null }
  | {
      readonly kind: 'order-failed';
      readonly why: OrderFailure;
      readonly reason: string;
      readonly retryAfterMs: number | null;
    }
  | ({ readonly kind: 'issued' } & CertificateDates)
  /** `window` null: the authority has none to tell, now or ever. */
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

/** `chance` in [0, 1): what spreads those that began, or failed, together. */
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
  // Once: from an authority that goes on saying so it is a refusal like another.
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
  // The instant stays while the window does: drawn anew at each look, the earliest of all would win.
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

/** By shares of its life: how long that is, is the authority's to say, and changes. */
const renewalByRule = ({ notBefore, notAfter }: CertificateDates): number => {
  const lifeMs = notAfter - notBefore;
  const share = lifeMs < CERTIFICATE_SHORT_LIFE_MS ? 1 / 2 : 2 / 3;
  return Math.round(notBefore + lifeMs * share);
};

/** Under a tenth of its life is left. */
const emergencyAt = ({ issued }: CertificateLife): number =>
  issued === null ? Number.POSITIVE_INFINITY : issued.notAfter - (issued.notAfter - issued.notBefore) / 10;

/** Whatever the authority's window says, the last tenth is not waited for. */
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

/** When it is to be looked at next. */
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

/** How many orders of one kind accounts can make within a window that moves. */
export interface OrderBudgetRules {
  readonly max: number;
  readonly windowMs: number;
  /** How many of them one account can make; absent: all of them. */
  readonly perAccount?: number;
}

/** One order of an account. An older version wrote down the time alone. */
export type BudgetEntry = number | { readonly at: number; readonly account: string };

export type BudgetAnswer =
  | { readonly kind: 'taken'; readonly entries: readonly BudgetEntry[] }
  /** `isWhole`: the budget is empty for every account, not only for this one. */
  | { readonly kind: 'empty'; readonly until: number; readonly isWhole: boolean };

/** `entries` oldest first. The operator's own names (`account` null) are few: they never wait for orders of accounts, and take none from them. */
export const takeFromBudget = (
  entries: readonly BudgetEntry[],
  { max, windowMs, perAccount = max }: OrderBudgetRules,
  now: number,
  account: string | null,
): BudgetAnswer => {
  // An entry later than now was written under a clock that has been set back since. It would block for ever.
  const recent = entries.filter((entry) => atOf(entry) > now - windowMs && atOf(entry) <= now);
  if (account === null) return { kind: 'taken', entries: recent };
  const shares = new Shares({ limit: max, perHolder: perAccount });
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

/** The entry with whose end there are fewer than `max` again. */
const endOf = (entries: readonly BudgetEntry[], max: number): number => atOf(entries[entries.length - max] ?? 0);
