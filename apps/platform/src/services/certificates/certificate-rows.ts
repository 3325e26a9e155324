// Rows of certificates as the store hands them out.
import type { CertificateRecord, StoredCertificate } from '@tunnel/certificates/acme';
import type { CertificateLife } from '@tunnel/certificates/life';
import type { Selectable } from 'kysely';
import type { CertificatesTable } from '../../db/certificate-tables.ts';

/** A record and what the platform knows of it besides. */
export interface KeptCertificate extends CertificateRecord {
  /** Not renewed while the proof of its domain is gone. */
  readonly isSuspended: boolean;
}

export const KEPT_COLUMNS = ['id', 'names', 'life', 'order_key', 'certificate', 'user_id', 'suspended'] as const;

export type KeptRow = Pick<Selectable<CertificatesTable>, (typeof KEPT_COLUMNS)[number]>;

export const keptCertificate = (row: KeptRow): KeptCertificate => ({
  ...certificateRecord(row),
  isSuspended: row.suspended,
});

export const certificateRecord = (row: KeptRow): CertificateRecord => ({
  id: row.id,
  names: row.names.split(' '),
  accountId: row.user_id,
  life: certificateLife(row),
  orderKey: row.order_key,
  certificate: row.certificate as StoredCertificate | null,
});

export const certificateLife = ({ life }: { readonly life: Record<string, unknown> }): CertificateLife =>
  life as unknown as CertificateLife;

/** What edges and people are shown of it: when that is another, edges are told. */
export const visibleState = ({ issued, order, failures, lastError, renewAt }: CertificateLife): string =>
  JSON.stringify([issued, order !== null, failures > 0, lastError, renewAt]);
