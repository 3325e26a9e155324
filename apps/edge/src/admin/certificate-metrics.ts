// Metrics of certificates: number by state, time until expiry, and results of orders.
import type { Metrics, Sample } from '@tunnel/runtime';
import { type CertificateSources, type ListedCertificate, listCertificates } from './certificate-list.ts';

export interface CertificateFigures extends CertificateSources {
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number;
}

const STATES = ['none', 'ordering', 'valid', 'renewing', 'failing'] as const;
/** Metrics label for the domains of all tenants. Tenant domains are private and can be numerous, so only the soonest expiry is exported. */
const TENANTS = 'own-domains';

/** Adds the certificate metrics. Returns a function that refreshes the list of certificates, to be called before each scrape. */
export const addCertificateSeries = (metrics: Metrics, figures: CertificateFigures): (() => Promise<void>) => {
  let listed: readonly ListedCertificate[] = [];
  metrics.seriesOf('tunnel_certificates', 'Certificates in use or being issued, by state', 'gauge', () =>
    STATES.map((state) => ({ labels: { state }, value: listed.filter((one) => one.state === state).length })),
  );
  metrics.seriesOf(
    'tunnel_certificate_expires_seconds',
    'Seconds until a certificate expires: one series per name of the operator, and the soonest expiry of the remaining names',
    'gauge',
    () => endsOf(listed, figures.now()),
  );
  const { acmeCertificates } = figures;
  if (acmeCertificates !== null && acmeCertificates.orders !== null) {
    metrics.seriesOf('tunnel_acme_orders_total', 'Certificate orders, by result', 'counter', () =>
      Object.entries(acmeCertificates.orders ?? {}).map(([result, value]) => ({ labels: { result }, value })),
    );
  }
  return async () => {
    listed = await listCertificates(figures);
  };
};

const endsOf = (listed: readonly ListedCertificate[], now: number): Sample[] => {
  const ends = new Map<string, number>();
  for (const { names, isOperators, notAfter } of listed) {
    if (notAfter === null) continue;
    for (const name of isOperators ? names : [TENANTS]) {
      ends.set(name, Math.min(ends.get(name) ?? Number.POSITIVE_INFINITY, notAfter));
    }
  }
  return Array.from(ends, ([name, notAfter]) => ({ labels: { name }, value: Math.round((notAfter - now) / 1000) }));
};
