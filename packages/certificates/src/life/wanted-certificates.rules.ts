// Determines the wanted certificates: for the operator's names, reserved names and verified domains. Visitors cannot cause an order,
// because no handshake or request is an input.

/** A custom domain that is or was verified. */
export interface CertifiedDomain {
  /** Name of the custom domain, including `*.` for a wildcard. */
  readonly name: string;
  readonly accountId: string | null;
  readonly wantsCertificate: boolean;
  readonly state: 'verified' | 'lapsed';
}

/** Reserved name: `shop` or `*.shop` below the edge's domain. */
export interface CertifiedName {
  readonly label: string;
  readonly accountId: string | null;
}

export interface CertificateFacts {
  /** Domain of the edge: `[server] domain`. */
  readonly domain: string;
  /** Host of the platform, if served with a managed certificate. Null otherwise, or if it equals the domain. */
  readonly platformHost: string | null;
  /** True if `[[policy.login]]` is used, for which the edge needs a host name. */
  readonly hasLogin: boolean;
  /** How dns-01 challenges are answered: `[acme] dns`. */
  readonly dns: 'none' | 'builtin' | 'exec';
  /** True if dns-01 works here: the responder is listening, or a program is configured. */
  readonly canWildcard: boolean;
  /** State of the wildcard certificate for the edge's domain. Null before its first order. */
  readonly wildcard: { readonly isValid: boolean; readonly hasFailed: boolean } | null;
  readonly domains: readonly CertifiedDomain[];
  /** Reserved names of accounts, oldest first. */
  readonly reserved: readonly CertifiedName[];
  /** Names with a valid certificate, reserved or not. Undefined: certificates of released names are deleted at once. */
  readonly certified?: readonly CertifiedName[];
}

/**
 * `ordered`: created if absent. `kept`: renewed if present, but not created here; another platform may be able to. `suspended`: kept and
 * used if present, but not renewed.
 */
export type CertificateKeeping = 'ordered' | 'kept' | 'suspended';

export interface WantedCertificate {
  readonly name: string;
  /** Account that owns the certificate's name. Null for the operator's names. */
  readonly accountId: string | null;
  readonly keeping: CertificateKeeping;
  /** True for names below the edge's domain, for which authorities limit certificates per week. */
  readonly isCounted: boolean;
}

const WILDCARD = '*.';
/** Host label of the edge itself, which no tunnel can have. */
const EDGE_LABEL = 'edge';

/** Returns the certificates that the server should have, one entry per name. Other certificates are deleted with their keys. */
export const wantedCertificates = (facts: CertificateFacts): readonly WantedCertificate[] => {
  const wanted = new Map<string, WantedCertificate>();
  for (const one of [...operatorsOwn(facts), ...ownDomains(facts), ...reservedNames(facts), ...releasedNames(facts)]) {
    // A custom domain may be lapsed in several accounts, so an ordered entry takes precedence.
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
    // A moved domain is lapsed for one account and verified for another, which decides.
    if (state === 'lapsed' && verified.has(name)) return [];
    const isWildcard = name.startsWith(WILDCARD);
    // The operator's DNS program only sets records of the operator's domain, so accounts get no wildcard certificates.
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
 * A released name keeps its certificate until expiry. If it were deleted, an account could exhaust the weekly limit by reserving and
 * releasing names.
 */
const releasedNames = (facts: CertificateFacts): WantedCertificate[] => {
  const { certified = [], reserved } = facts;
  const labels = new Set(reserved.map(({ label }) => label));
  const released = certified.filter(({ label }) => !labels.has(label));
  return reservedNames({ ...facts, reserved: released }).map((one) => ({ ...one, keeping: 'suspended' }));
};

const wildcardKeeping = ({ canWildcard }: CertificateFacts): CertificateKeeping => (canWildcard ? 'ordered' : 'kept');

/** A pending wildcard certificate is waited for, because certificates for single names are limited per week. */
const lacksWildcard = ({ dns, canWildcard, wildcard }: CertificateFacts): boolean => {
  if (dns === 'none') return true;
  if (wildcard?.isValid === true) return false;
  return wildcard === null ? !canWildcard : wildcard.hasFailed;
};
