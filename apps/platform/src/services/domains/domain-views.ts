// Custom domains in the form of the API: DNS records to set and whether they were found, the certificate, and the number of open tunnels.

import { cnameTarget, recordsOf } from '@tunnel/certificates/domains';
import type { OwnDomainView } from '@tunnel/contract';
import { type RawBuilder, sql } from 'kysely';
import { loadCertificateViews } from '../certificates/certificate-views.ts';
import type { ServiceContext } from '../shared/service-context.ts';
import { type DomainRow, domainNameOf, endpointOfDomain, storedCheck } from './domain-rows.ts';
import type { DomainSettings } from './domain-settings.ts';
import type { DomainVerifier } from './domain-verifier.ts';

interface ViewContext extends Pick<ServiceContext, 'db' | 'clock'> {
  readonly domains: DomainSettings;
  readonly domainVerifier: Pick<DomainVerifier, 'edgeAddresses'>;
}

interface ShownRow extends DomainRow {
  readonly active_tunnels: number;
}

/** Reads the selected custom domains for the API, oldest first. */
export const readViews = async (context: ViewContext, which: RawBuilder<unknown>): Promise<OwnDomainView[]> => {
  const { db, clock, domains, domainVerifier } = context;
  const { rows } = await sql<ShownRow>`
    select own_domains.*, (
      select count(*) from tunnel_log
      where endpoint = ${endpointOfDomain('')} || own_domains.name and unregistered_at is null
        and tunnel_log.user_id = own_domains.user_id
    ) as active_tunnels
    from own_domains where ${which} order by created_at, id
  `.execute(db);
  if (rows.length === 0) return [];
  const wanted = rows.flatMap((row) => (wantsCertificate(row, domains) ? [row.name] : []));
  const certificates = await loadCertificateViews(db, wanted, clock.now());
  const edgeAddresses = await domainVerifier.edgeAddresses();
  return rows.map((row) => ({
    ...viewOf(row, { domains, edgeAddresses }),
    certificate: certificates.get(row.name) ?? null,
  }));
};

/** Returns true if a certificate is ordered for the domain. Wildcard certificates need the built-in DNS responder. */
const wantsCertificate = (row: DomainRow, domains: DomainSettings): boolean =>
  row.wants_certificate && (row.wildcard ? domains.hasWildcardCertificates : domains.hasCertificates);

interface Shown {
  readonly domains: DomainSettings;
  readonly edgeAddresses: readonly string[];
}

const viewOf = (row: ShownRow, { domains, edgeAddresses }: Shown): Omit<OwnDomainView, 'certificate'> => {
  const check = storedCheck(row);
  const facts = {
    token: row.token,
    domain: domains.serverDomain,
    edgeAddresses,
    isApex: check?.isApex ?? null,
    wantsChallenge: row.wants_certificate && domains.hasWildcardCertificates,
  };
  return {
    id: row.id,
    name: row.name,
    wildcard: row.wildcard,
    state: row.state,
    token: row.token,
    cname_target: cnameTarget(row.token, domains.serverDomain),
    records: recordsOf(domainNameOf(row), facts, check?.answers ?? null).map((record) => ({ ...record })),
    active_tunnels: row.active_tunnels,
    created_at: row.created_at.toISOString(),
    verified_at: row.verified_at?.toISOString() ?? null,
    checked_at: row.checked_at?.toISOString() ?? null,
    last_error: row.last_error,
  };
};
