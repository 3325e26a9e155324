// The life of one own domain's name, and whose it is. Many accounts may ask for it and wait, one has it verified; DNS decides, and only an answer
// of DNS: a resolver that fails changes nothing. What all accounts have of a name stands in one state, because one look decides about all of them.
import { CERTIFICATES_LIMITS } from '../limits.ts';
import { type Proof, type ProofFindings, proofOf } from './domain-proof.rules.ts';

/** Time from adding a domain to its first check, for users who set the DNS records before. */
const DOMAIN_FIRST_LOOK_MS = 5000;
/** the second, from the same moment */
const DOMAIN_SECOND_LOOK_MS = 15_000;
/** the third, likewise */
const DOMAIN_THIRD_LOOK_MS = 30_000;
/** Time between the checks that follow, while the user probably waits at the screen. */
const DOMAIN_OFTEN_LOOK_MS = 60_000;
/** and for so long after it was added */
const DOMAIN_OFTEN_FOR_MS = 60 * 60_000;
/** then so often: records that were there before are kept by resolvers for hours */
const DOMAIN_SELDOM_LOOK_MS = 10 * 60_000;
/**
 * a domain whose proof was not found by then has failed, and is checked again only when the user asks for it
 * @limit accounts: Custom domain, time to set the DNS record for verification | verification fails and can be started again
 */
const DOMAIN_PENDING_MS = 72 * 60 * 60_000;
/** how often a domain is looked at that is verified, or has lapsed */
const DOMAIN_DAILY_LOOK_MS = 24 * 60 * 60_000;
/**
 * between two looks that are asked for by hand
 * @limit accounts: Custom domain, time between manual checks | 429 `DOMAIN_CHECK_TOO_SOON`
 */
const DOMAIN_ASKED_LOOK_MS = 5000;
/** between two mails of one kind about one domain */
const DOMAIN_MAIL_MS = 24 * 60 * 60_000;

export type DomainState = 'pending' | 'verified' | 'failed' | 'lapsed';

/** `proof-missing`: at the first look without it. */
export type DomainMail = 'proof-missing' | 'lapsed' | 'moved-away';

/** The name as one account has it, or waits for it. */
export interface OwnDomain {
  readonly id: string;
  readonly token: string;
  readonly state: DomainState;
  /** When it was added, or began again: its looks are counted from here. */
  readonly since: number;
  readonly verifiedAt: number | null;
  readonly checkedAt: number | null;
  /** Of a verified one: the first of the looks in a row that did not find its proof. */
  readonly absentSince: number | null;
  /** null: nobody looks by itself. */
  readonly nextLookAt: number | null;
  /** Why it is not verified, for its owner. */
  readonly lastError: string | null;
  readonly mailedAt: Readonly<Partial<Record<DomainMail, number>>>;
}

/** The same name of several accounts, in the order in which they added it. At most one of them is verified. */
export type OwnDomains = readonly OwnDomain[];

export type DomainEvent =
  | { readonly kind: 'added'; readonly id: string; readonly token: string }
  | { readonly kind: 'removed'; readonly id: string }
  /** By hand. One that has failed begins again. */
  | { readonly kind: 'check-asked'; readonly id: string }
  /**
   * `ids`: the accounts' domains that the look was made for; absent: all of them. The others are left as they are unless the name has another owner now,
   * so that an account that looks often neither holds up others nor shows them that it waits for the same name.
   * `problem`: why there was no answer, where there was none.
   */
  | {
      readonly kind: 'looked';
      readonly ids?: readonly string[];
      readonly findings: ProofFindings;
      readonly problem: string | null;
    };

export type DomainEffect =
  /** It is this account's from now on: tell the edges, order its certificate. */
  | { readonly kind: 'verified'; readonly id: string }
  /** No new tunnel and no renewal; tunnels that live stay. */
  | { readonly kind: 'lapsed'; readonly id: string }
  /** DNS has decided: `from` is lapsed, and its tunnels on the name are closed; `to` is verified. */
  | { readonly kind: 'moved'; readonly from: string; readonly to: string }
  | { readonly kind: 'failed'; readonly id: string }
  /** Its tunnels are closed, key and certificate destroyed. */
  | { readonly kind: 'removed'; readonly id: string; readonly wasVerified: boolean }
  | { readonly kind: 'mail'; readonly id: string; readonly mail: DomainMail };

type Step = readonly [OwnDomains, readonly DomainEffect[]];

export const NO_DOMAINS: readonly OwnDomain[] = [];

/** null: nobody has it. */
export const holderOf = (domains: OwnDomains): OwnDomain | null =>
  domains.find(({ state }) => state === 'verified') ?? null;

/** When the name is to be looked at next, for whichever account; null: when somebody asks. */
export const nextLookAt = (domains: OwnDomains): number | null => {
  const times = domains.flatMap(({ nextLookAt: at }) => (at === null ? [] : [at]));
  return times.length === 0 ? null : Math.min(...times);
};

/** 0: a look by hand may be now. */
export const askedLookWaitMs = ({ checkedAt }: OwnDomain, now: number): number =>
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
    const proof = proofOf(domain.token, findings);
    const seen = { ...domain, checkedAt: now, lastError: errorOf(proof, problem, domain === winner) };
    const [after, ...told] = domain === winner ? won(seen, holder, now) : judged(seen, proof, winner, now);
    effects.push(...told);
    return { ...after, nextLookAt: lookAfter(after, now) };
  });
  return [next, effects];
};

/** Whose the name is after this look; null: as before, or nobody's. Where two tokens stand there, who came first has it. */
const winnerOf = (domains: OwnDomains, holder: OwnDomain | null, findings: ProofFindings): OwnDomain | null => {
  const ofHolder = holder === null ? 'absent' : proofOf(holder.token, findings);
  if (ofHolder === 'found') return holder;
  // It may still stand there: nothing is taken from anybody on half an answer.
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

/** A record that comes and goes must not fill a mailbox. */
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
  // Only whoever can set records there reads this one: its own token was found.
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
