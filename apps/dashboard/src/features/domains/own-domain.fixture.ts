// Custom domains for tests, in the form of the API.
import type { DomainCertificate, DomainRecord, OwnDomainView } from '@tunnel/contract';

export const makeRecord = (some: Partial<DomainRecord> = {}): DomainRecord => ({
  type: 'CNAME',
  name: 'shop.example.com',
  value: 'k3v7q2m5x4n6p7r2t3wa.tunnels.example.net',
  purpose: 'proof',
  found: true,
  ...some,
});

export const makeCertificate = (some: Partial<DomainCertificate> = {}): DomainCertificate => ({
  state: 'valid',
  issuer: 'Test CA',
  not_before: '2030-01-01T00:00:00.000Z',
  not_after: '2030-04-01T00:00:00.000Z',
  renew_at: '2030-03-01T00:00:00.000Z',
  last_error: null,
  ...some,
});

/** A verified domain with a valid certificate, unless `some` says otherwise. */
export const makeDomain = (some: Partial<OwnDomainView> = {}): OwnDomainView => ({
  id: 'dom-1',
  name: 'shop.example.com',
  wildcard: false,
  state: 'verified',
  token: 'k3v7q2m5x4n6p7r2t3wa',
  cname_target: 'k3v7q2m5x4n6p7r2t3wa.tunnels.example.net',
  records: [makeRecord()],
  certificate: makeCertificate(),
  active_tunnels: 0,
  created_at: '2030-01-01T00:00:00.000Z',
  verified_at: '2030-01-01T00:00:10.000Z',
  checked_at: '2030-01-02T00:00:00.000Z',
  last_error: null,
  ...some,
});
