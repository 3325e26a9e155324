// Which certificates there should be: of the operator's own names, of names that are reserved, of domains that are proven. Nothing that a visitor does is
// among the facts: no handshake and no request ever brings an order.

/** An own domain that is, or was, proven. */
export interface CertifiedDomain {
  /** With its `*.` if it is a wildcard. */
  readonly name: string;
  readonly accountId: string | null;
  readonly wantsCertificate: boolean;
  readonly state: 'verified' | 'lapsed';
}

/** `shop` or `*.shop`, below the domain. */
export interface CertifiedName {
  readonly label: string;
  readonly accountId: string | null;
}

export interface CertificateFacts {
  /** `[server] domain`. */
  readonly domain: string;
  /** Of the platform, where it is shown with a certificate of ours; null: it is not, or it is the domain. */
  readonly platformHost: string | null;
  /** `[[policy.login]]` is used: the edge answers at a name of its own. */
  readonly hasLogin: boolean;
  /** `[acme] dns`. */
  readonly dns: 'none' | 'builtin' | 'exec';
  /** It works here: the responder is open, or there is a program. */
  readonly canWildcard: boolean;
  /** How the domain's own wildcard stands; null: nobody has ordered it yet. */
  readonly wildcard: { readonly isValid: boolean; readonly hasFailed: boolean } | null;
  readonly domains: readonly CertifiedDomain[];
  /** The reserved ones, oldest first. */
  readonly reserved: readonly CertifiedName[];
  /** Names that have a valid certificate, whether or not they are still reserved. Absent: certificates of names that were given back are forgotten at once. */
  readonly certified?: readonly CertifiedName[];
}

/**
 * `ordered`: made where it is not there. `kept`: renewed where it is there, and not begun here; another platform may be able to. `suspended`: kept and
 * shown where it is there, and not renewed.
 */
export type CertificateKeeping = 'ordered' | 'kept' | 'suspended';

export interface WantedCertificate {
  readonly name: string;
  /** null: the operator's own. */
  readonly accountId: string | null;
  readonly keeping: CertificateKeeping;
  /** One of the many below one domain, of which an authority gives so many a week. */
  readonly isCounted: boolean;
}

const WILDCARD = '*.';
/** Where the edge answers by itself: nobody's tunnel can have it. */
const EDGE_LABEL = 'edge';

/** Of each name one. What is not among them is forgotten, with its key. */
export const wantedCertificates = (facts: CertificateFacts): readonly WantedCertificate[] => {
  const wanted = new Map<string, WantedCertificate>();
  for (const one of [...operatorsOwn(facts), ...ownDomains(facts), ...reservedNames(facts), ...releasedNames(facts)]) {
    // Several accounts may have had one that is nobody's now.
    if (wanted.get(one.name)?.keeping !== 'ordered') wanted.set(one.name, one);
  }
  return [...wanted.values()];
};

const operatorsOwn = (facts: CertificateFacts): WantedCertificate[] => {
  const { domain, platformHost, hasLogin, dns } = facts;
  const own = (name: string): WantedCertificate => ({ name, accountId: null, keeping: 'ordered', isCounted: false });
  return [
    own(domain),
    ...(platformHost === null || platformHost === domain ? [] : [own(platformHost)]),
    ...(dns === 'none' ? [] : [{ ...own(WILDCARD + domain), keeping: wildcardKeeping(facts) }]),
    ...(hasLogin && lacksWildcard(facts) ? [own(`${EDGE_LABEL}.${domain}`)] : []),
  ];
};

const ownDomains = (facts: CertificateFacts): WantedCertificate[] => {
  const verified = new Set(facts.domains.filter(({ state }) => state === 'verified').map(({ name }) => name));
  return facts.domains.flatMap(({ name, accountId, wantsCertificate, state }) => {
    // A domain that moved is lapsed for one account and verified for another, who decides alone.
    if (state === 'lapsed' && verified.has(name)) return [];
    const isWildcard = name.startsWith(WILDCARD);
    // The operator's program sets records of the operator's own domain.
    if (!wantsCertificate || (isWildcard && facts.dns !== 'builtin')) return [];
    const keeping = isWildcard ? wildcardKeeping(facts) : 'ordered';
    return [{ name, accountId, keeping: state === 'lapsed' ? 'suspended' : keeping, isCounted: false }];
  });
};

const reservedNames = (facts: CertificateFacts): WantedCertificate[] =>
  facts.reserved.flatMap(({ label, accountId }): WantedCertificate[] => {
    const name = `${label}.${facts.domain}`;
    if (label.startsWith(WILDCARD)) {
      return facts.dns === 'none' ? [] : [{ name, accountId, keeping: wildcardKeeping(facts), isCounted: true }];
    }
    return lacksWildcard(facts) ? [{ name, accountId, keeping: 'ordered', isCounted: true }] : [];
  });

/**
 * A name that was given back keeps its certificate until that ends. Destroying it would let an account reserve and release names in turn, and use up the
 * certificates of the week.
 */
const releasedNames = (facts: CertificateFacts): WantedCertificate[] => {
  const { certified = [], reserved } = facts;
  const labels = new Set(reserved.map(({ label }) => label));
  const released = certified.filter(({ label }) => !labels.has(label));
  return reservedNames({ ...facts, reserved: released }).map((one) => ({ ...one, keeping: 'suspended' }));
};

const wildcardKeeping = ({ canWildcard }: CertificateFacts): CertificateKeeping => (canWildcard ? 'ordered' : 'kept');

/** One that is on its way is waited for: single names are few a week. */
const lacksWildcard = ({ dns, canWildcard, wildcard }: CertificateFacts): boolean => {
  if (dns === 'none') return true;
  if (wildcard?.isValid === true) return false;
  return wildcard === null ? !canWildcard : wildcard.hasFailed;
};
