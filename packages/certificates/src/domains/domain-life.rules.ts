// State machine of a custom domain's name and its ownership. Many accounts can add a name and wait, one has it verified. Only DNS answers
// decide; a failing resolver changes nothing. All accounts of a name share a state, because one check decides for all of them.
import { CERTIFICATES_LIMITS } from '../limits.ts';
import { judgeProof, type Proof, type ProofFindings } from './domain-proof.rules.ts';

/** Time from adding a domain to its first check, for users who set the DNS records before. */
const DOMAIN_FIRST_LOOK_MS = 5000;
/** Time from adding a custom domain to the second check of its DNS records. */
const DOMAIN_SECOND_LOOK_MS = 15_000;
/** Time from adding a custom domain to the third check of its DNS records. */
const DOMAIN_THIRD_LOOK_MS = 30_000;
/** Interval of the following checks, while the user probably waits at the screen. */
const DOMAIN_OFTEN_LOOK_MS = 60_000;
/** Time after adding a custom domain in which its DNS records are checked frequently. */
const DOMAIN_OFTEN_FOR_MS = 60 * 60_000;
/** Interval of later checks of a custom domain, because resolvers may cache old records for hours. */
const DOMAIN_SELDOM_LOOK_MS = 10 * 60_000;
/**
 * Time until an unproven domain fails. Afterwards it is only checked on request.
 * @limit accounts: Custom domain, time to set the DNS record for verification | verification fails and can be started again
 */
const DOMAIN_PENDING_MS = 72 * 60 * 60_000;
/** Interval of DNS checks for a verified or lapsed custom domain. */
const DOMAIN_DAILY_LOOK_MS = 24 * 60 * 60_000;
/**
 * Minimum time between manual checks.
 * @limit accounts: Custom domain, time between manual checks | 429 `DOMAIN_CHECK_TOO_SOON`
 */
const DOMAIN_ASKED_LOOK_MS = 5000;
/** Minimum time between two mails of the same kind about a custom domain. */
const DOMAIN_MAIL_MS = 24 * 60 * 60_000;

export type DomainState = 'pending' | 'verified' | 'failed' | 'lapsed';

/** Kind of mail about a custom domain. `proof-missing` is sent at the first check without the proof. */
export type DomainMail = 'proof-missing' | 'lapsed' | 'moved-away';

/** A custom domain in one account, verified or waiting for verification. */
export interface OwnDomain {
  readonly id: string;
  readonly token: string;
  readonly state: DomainState;
  /** When the domain was added or restarted. Checks are scheduled from this time. */
  readonly since: number;
  readonly verifiedAt: number | null;
  readonly checkedAt: number | null;
  /** Time of the first of consecutive checks without the proof. Only for a verified domain. */
  readonly absentSince: number | null;
  /** Time of the domain's next automatic check. Null if none is scheduled. */
  readonly nextLookAt: number | null;
  /** Why the domain is not verified, as shown to its owner. */
  readonly lastError: string | null;
  readonly mailedAt: Readonly<Partial<Record<DomainMail, number>>>;
}

/** The name in several accounts, in order of adding. At most one is verified. */
export type OwnDomains = readonly OwnDomain[];

export type DomainEvent =
  | { readonly kind: 'added'; readonly id: string; readonly token: string }
  | { readonly kind: 'removed'; readonly id: string }
  /** The owner requested a check of the domain. A failed domain starts again. */
  | { readonly kind: 'check-asked'; readonly id: string }
  /**
   * `ids` are the domains that the check was made for; undefined means all. The others change only if the name got another owner, so that
   * an account that checks often neither delays others nor reveals that it waits for the same name. `problem` is the reason if there was no
   * answer.
   */
  | {
      readonly kind: 'looked';
      readonly ids?: readonly string[];
      readonly findings: ProofFindings;
      readonly problem: string | null;
    };

export type DomainEffect =
  /** The name now belongs to the account: notify the edges and order its certificate. */
  | { readonly kind: 'verified'; readonly id: string }
  /** The domain has lapsed: no new tunnels and no certificate renewal. Open tunnels stay. */
  | { readonly kind: 'lapsed'; readonly id: string }
  /** The name has moved: `from` is lapsed and its tunnels are closed; `to` is verified. */
  | { readonly kind: 'moved'; readonly from: string; readonly to: string }
  | { readonly kind: 'failed'; readonly id: string }
  /** The domain was removed: its tunnels are closed, its key and certificate deleted. */
  | { readonly kind: 'removed'; readonly id: string; readonly wasVerified: boolean }
  | { readonly kind: 'mail'; readonly id: string; readonly mail: DomainMail };

type Step = readonly [OwnDomains, readonly DomainEffect[]];

export const NO_DOMAINS: readonly OwnDomain[] = [];

/** Returns the verified domain among all accounts with this name, or null. */
export const holderOf = (domains: OwnDomains): OwnDomain | null =>
  domains.find(({ state }) => state === 'verified') ?? null;

/** Returns the time of the earliest scheduled check over all accounts with this name, or null. */
export const nextLookAt = (domains: OwnDomains): number | null => {
  const times = domains.flatMap(({ nextLookAt: at }) => (at === null ? [] : [at]));
  return times.length === 0 ? null : Math.min(...times);
};

/** Returns how long a manual check of the domain has to wait, or 0 if it is allowed now. */
export const requestedCheckWaitMs = ({ checkedAt }: OwnDomain, now: number): number =>
  checkedAt === null ? 0 : Math.max(0, checkedAt + DOMAIN_ASKED_LOOK_MS - now);

export const transitionDomain = (domains: OwnDomains, event: DomainEvent, now: number): Step => {
  switch (event.kind) {
    case 'added':
      if (domains.some(({ id }) => id === event.id)) return [domains, []];
      return [[...domains, newDomain(event.id, event.token, now)], []];
    case 'removed': {
      const domain = domains.find(({ id }) => id === event.id);
      if (domain === undefined) return [domains, []];
      const wasVerified = domain.state === 'verified';
      return [domains.filter((other) => other !== domain), [{ kind: 'removed', id: domain.id, wasVerified }]];
    }
    case 'check-asked':
      return [domains.map((domain) => (domain.id === event.id ? lookNow(domain, now) : domain)), []];
    case 'looked':
      return looked(domains, event, now);
  }
};

const newDomain = (id: string, token: string, now: number): OwnDomain => ({
  id,
  token,
  state: 'pending',
  since: now,
  verifiedAt: null,
  checkedAt: null,
  absentSince: null,
  nextLookAt: now + DOMAIN_FIRST_LOOK_MS,
  lastError: null,
  mailedAt: {},
});

const lookNow = (domain: OwnDomain, now: number): OwnDomain =>
  domain.state === 'failed'
    ? { ...domain, state: 'pending', since: now, nextLookAt: now }
    : { ...domain, nextLookAt: now };

const looked = (
  domains: OwnDomains,
  { ids, findings, problem }: Extract<DomainEvent, { kind: 'looked' }>,
  now: number,
): Step => {
  const holder = holderOf(domains);
  const winner = winnerOf(domains, holder, findings);
  const hasMoved = winner !== null && winner !== holder;
  const effects: DomainEffect[] = [];
  const next = domains.map((domain): OwnDomain => {
    const isMoved = hasMoved && (domain === winner || domain === holder);
    if (ids !== undefined && !ids.includes(domain.id) && !isMoved) return domain;
    const proof = judgeProof(domain.token, findings);
    const seen = { ...domain, checkedAt: now, lastError: errorOf(proof, problem, domain === winner) };
    const [after, ...told] = domain === winner ? won(seen, holder, now) : judged(seen, proof, winner, now);
    effects.push(...told);
    return { ...after, nextLookAt: lookAfter(after, now) };
  });
  return [next, effects];
};

/**
 * Returns the owner after this check, or null if unchanged or without owner. If several tokens are found, the account that added the name
 * first wins.
 */
const winnerOf = (domains: OwnDomains, holder: OwnDomain | null, findings: ProofFindings): OwnDomain | null => {
  const ofHolder = holder === null ? 'absent' : judgeProof(holder.token, findings);
  if (ofHolder === 'found') return holder;
  // The holder's token may still exist: an incomplete answer takes the name from no account.
  if (ofHolder === 'no-answer') return null;
  return domains.find(({ token }) => findings.tokens.includes(token)) ?? null;
};

type Judged = readonly [OwnDomain, ...DomainEffect[]];

const won = (domain: OwnDomain, holder: OwnDomain | null, now: number): Judged => {
  const { id } = domain;
  if (domain.state === 'verified') return [{ ...domain, absentSince: null }];
  const next: OwnDomain = { ...domain, state: 'verified', verifiedAt: now, absentSince: null };
  return [next, holder === null ? { kind: 'verified', id } : { kind: 'moved', from: holder.id, to: id }];
};

const judged = (domain: OwnDomain, proof: Proof, winner: OwnDomain | null, now: number): Judged => {
  if (proof !== 'absent') return [domain];
  const { id } = domain;
  if (domain.state === 'verified') {
    if (winner !== null) return mailed({ ...domain, state: 'lapsed', absentSince: null }, 'moved-away', now);
    const absentSince = domain.absentSince ?? now;
    if (now - absentSince < CERTIFICATES_LIMITS.DOMAIN_ABSENT_MS) {
      const missing = { ...domain, absentSince };
      return domain.absentSince === null ? mailed(missing, 'proof-missing', now) : [missing];
    }
    return mailed({ ...domain, state: 'lapsed', absentSince: null }, 'lapsed', now, { kind: 'lapsed', id });
  }
  if (domain.state === 'pending' && now - domain.since >= DOMAIN_PENDING_MS) {
    return [
      { ...domain, state: 'failed' },
      { kind: 'failed', id },
    ];
  }
  return [domain];
};

/** Sends a mail about the domain unless one was sent recently, because a DNS record may come and go. */
const mailed = (domain: OwnDomain, mail: DomainMail, now: number, ...effects: DomainEffect[]): Judged => {
  const last = domain.mailedAt[mail];
  if (last !== undefined && now - last < DOMAIN_MAIL_MS) return [domain, ...effects];
  return [
    { ...domain, mailedAt: { ...domain.mailedAt, [mail]: now } },
    ...effects,
    { kind: 'mail', id: domain.id, mail },
  ];
};

const errorOf = (proof: Proof, problem: string | null, hasWon: boolean): string | null => {
  if (hasWon) return null;
  // This reason is shown only to an account that has its token in DNS.
  if (proof === 'found')
    return 'another account has this name, verified by a record that still exists; remove that record';
  return proof === 'absent' ? 'no record with the token was found' : `DNS gave no answer: ${problem ?? 'unknown'}`;
};

const lookAfter = ({ state, since }: OwnDomain, now: number): number | null => {
  if (state === 'failed') return null;
  if (state !== 'pending') return now + DOMAIN_DAILY_LOOK_MS;
  const age = now - since;
  const early = [DOMAIN_FIRST_LOOK_MS, DOMAIN_SECOND_LOOK_MS, DOMAIN_THIRD_LOOK_MS].find((at) => at > age);
  if (early !== undefined) return since + early;
  return now + (age < DOMAIN_OFTEN_FOR_MS ? DOMAIN_OFTEN_LOOK_MS : DOMAIN_SELDOM_LOOK_MS);
};
