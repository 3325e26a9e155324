// Certificates of names as users see them, from the current certificate authority.

import { type CertificateLife, certificateState } from '@tunnel/certificates/life';
import type { DomainCertificate } from '@tunnel/contract';
import type { Db } from '../../db/database.ts';

const NONE: DomainCertificate = {
  state: 'none',
  issuer: null,
  not_before: null,
  not_after: null,
  renew_at: null,
  last_error: null,
};

/** Returns a certificate view for every name. If no certificate was ordered for a name, the view has the state `none`. */
export const loadCertificateViews = async (
  db: Db,
  names: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, DomainCertificate>> => {
  const views = new Map(names.map((name) => [name, NONE]));
  if (names.length === 0) return views;
  const rows = await db
    .selectFrom('certificates as row')
    .innerJoin('acme_authority as authority', 'authority.directory', 'row.directory')
    .select(['row.names', 'row.life', 'row.suspended', 'row.certificate'])
    .where('row.names', 'in', [...names])
    .execute();
  for (const row of rows) views.set(row.names, certificateView(row, now));
  return views;
};

export interface ViewedRow {
  readonly life: unknown;
  readonly suspended: boolean;
  readonly certificate: unknown;
}

export const certificateView = (row: ViewedRow, now: number): DomainCertificate => {
  const life = row.life as CertificateLife;
  const { issuer = null } = (row.certificate ?? {}) as { readonly issuer?: string };
  return {
    state: certificateState(life, now),
    issuer,
    not_before: isoOf(life.issued?.notBefore),
    not_after: isoOf(life.issued?.notAfter),
    renew_at: row.suspended ? null : isoOf(life.renewAt),
    last_error: life.lastError,
  };
};

const isoOf = (at: number | null | undefined): string | null => (at == null ? null : new Date(at).toISOString());
