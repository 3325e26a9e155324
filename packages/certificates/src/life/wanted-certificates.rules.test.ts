import { describe, expect, it } from 'vitest';
import { type CertificateFacts, wantedCertificates } from './wanted-certificates.rules.ts';

const FACTS: CertificateFacts = {
  domain: 'tunnels.test',
  platformHost: null,
  hasLogin: false,
  dns: 'none',
  canWildcard: false,
  wildcard: null,
  domains: [],
  reserved: [],
};

const BUILTIN = { dns: 'builtin', canWildcard: true } as const;
const VALID = { isValid: true, hasFailed: false };
const RESERVED = [
  { label: 'shop', accountId: 'a' },
  { label: '*.shop', accountId: 'a' },
];

const namesOf = (facts: Partial<CertificateFacts>, keeping = 'ordered'): string[] =>
  wantedCertificates({ ...FACTS, ...facts })
    .filter((one) => one.keeping === keeping)
    .map(({ name }) => name);

const ownDomain = (name: string, given: Partial<CertificateFacts['domains'][number]> = {}) => ({
  name,
  accountId: 'a',
  wantsCertificate: true,
  state: 'verified' as const,
  ...given,
});

describe("certificates for the operator's names", () => {
  it("include the domain always, and the platform's host if it is different", () => {
    expect(namesOf({})).toEqual(['tunnels.test']);
    expect(namesOf({ platformHost: 'tunnels.test' })).toEqual(['tunnels.test']);
    expect(namesOf({ platformHost: 'console.test' })).toEqual(['tunnels.test', 'console.test']);
  });

  it('include the wildcard where dns-01 works; elsewhere an existing wildcard is kept', () => {
    expect(namesOf(BUILTIN)).toEqual(['tunnels.test', '*.tunnels.test']);
    expect(namesOf({ dns: 'exec', canWildcard: true })).toContain('*.tunnels.test');
    expect(namesOf({ dns: 'builtin' })).toEqual(['tunnels.test']);
    expect(namesOf({ dns: 'builtin' }, 'kept')).toEqual(['*.tunnels.test']);
    expect(namesOf({}, 'kept')).toEqual([]);
  });

  it('include the sign-in host only if it is used and no wildcard covers it', () => {
    expect(namesOf({ hasLogin: true })).toEqual(['tunnels.test', 'edge.tunnels.test']);
    expect(namesOf({ hasLogin: true, ...BUILTIN })).not.toContain('edge.tunnels.test');
    expect(namesOf({ hasLogin: true, ...BUILTIN, wildcard: VALID })).not.toContain('edge.tunnels.test');
    expect(namesOf({ hasLogin: true, ...BUILTIN, wildcard: { isValid: false, hasFailed: true } })).toContain(
      'edge.tunnels.test',
    );
  });
});

describe('certificates for custom domains', () => {
  it('are ordered for a verified domain if its owner wants it; a wildcard needs the built-in responder', () => {
    const domains = [ownDomain('shop.example'), ownDomain('no.example', { wantsCertificate: false })];
    expect(namesOf({ domains })).toEqual(['tunnels.test', 'shop.example']);
    const wild = [ownDomain('*.shop.example')];
    expect(namesOf({ domains: wild, ...BUILTIN })).toContain('*.shop.example');
    expect(namesOf({ domains: wild, dns: 'exec', canWildcard: true })).not.toContain('*.shop.example');
    expect(namesOf({ domains: wild, dns: 'builtin' }, 'kept')).toContain('*.shop.example');
  });

  it("depend only on the current owner's choice, even if it is no certificate", () => {
    const lapsed = ownDomain('*.shop.example', { state: 'lapsed' });
    const moved = ownDomain('*.shop.example', { accountId: 'b' });
    expect(namesOf({ dns: 'builtin', domains: [moved, lapsed] }, 'kept')).toContain('*.shop.example');
    expect(namesOf({ dns: 'builtin', domains: [moved, lapsed] }, 'suspended')).toEqual([]);
    const without = { ...moved, wantsCertificate: false };
    expect(namesOf({ ...BUILTIN, domains: [lapsed, without] }, 'suspended')).toEqual([]);
  });

  it('are kept without renewal for a lapsed domain, and belong to the new account after a move', () => {
    const lapsed = ownDomain('shop.example', { state: 'lapsed' });
    expect(namesOf({ domains: [lapsed] }, 'suspended')).toEqual(['shop.example']);
    const moved = ownDomain('shop.example', { accountId: 'b' });
    for (const domains of [
      [lapsed, moved],
      [moved, lapsed],
    ]) {
      const found = wantedCertificates({ ...FACTS, domains }).filter(({ name }) => name === 'shop.example');
      expect(found).toEqual([{ name: 'shop.example', accountId: 'b', keeping: 'ordered', isCounted: false }]);
    }
  });
});

describe('certificates for reserved names', () => {
  it('are ordered for each name while there is no wildcard, and count toward the budget', () => {
    const wanted = wantedCertificates({ ...FACTS, reserved: RESERVED });
    expect(wanted.slice(1)).toEqual([
      { name: 'shop.tunnels.test', accountId: 'a', keeping: 'ordered', isCounted: true },
    ]);
  });

  it('are kept without renewal after the name is released', () => {
    const certified = [...RESERVED, { label: 'old', accountId: 'b' }];
    expect(namesOf({ reserved: RESERVED, certified }, 'suspended')).toEqual(['old.tunnels.test']);
    expect(namesOf({ reserved: RESERVED, certified })).not.toContain('old.tunnels.test');
    // A wildcard covers the released name, so its certificate is not needed.
    expect(namesOf({ certified, ...BUILTIN, wildcard: VALID }, 'suspended')).toEqual(['*.shop.tunnels.test']);
  });

  it('include a wildcard below the name where dns-01 works', () => {
    expect(namesOf({ reserved: RESERVED, ...BUILTIN, wildcard: VALID })).toEqual([
      'tunnels.test',
      '*.tunnels.test',
      '*.shop.tunnels.test',
    ]);
  });

  it('wait for a wildcard that is being issued, but not for a wildcard that failed', () => {
    const of = (wildcard: CertificateFacts['wildcard']) => namesOf({ reserved: RESERVED, ...BUILTIN, wildcard });
    expect(of(null)).not.toContain('shop.tunnels.test');
    expect(of({ isValid: false, hasFailed: false })).not.toContain('shop.tunnels.test');
    expect(of({ isValid: false, hasFailed: true })).toContain('shop.tunnels.test');
    // A valid wildcard still covers the names while its renewal fails.
    expect(of({ isValid: true, hasFailed: true })).not.toContain('shop.tunnels.test');
    expect(namesOf({ reserved: RESERVED, dns: 'builtin', wildcard: null })).toContain('shop.tunnels.test');
    expect(
      namesOf({ reserved: RESERVED, dns: 'builtin', wildcard: { isValid: false, hasFailed: false } }),
    ).not.toContain('shop.tunnels.test');
  });
});
