// Conversion of certificate rows to the records returned by the store.
import type { CertificateRecord, StoredCertificate } from '@tunnel/certificates/acme';
import type { CertificateLife } from '@tunnel/certificates/life';
import type { Selectable } from 'kysely';
import type { CertificatesTable } from '../../db/certificate-tables.ts';

/** Certificate record with the additional columns of the platform. */
export interface KeptCertificate extends CertificateRecord {
  /** True while the verification record of the certificate's domain is missing. A suspended certificate is not renewed. */
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

/** Part of a certificate's state that edges and users can see, as a text for comparison. Edges are notified only when the text changes. */
export const visibleState = ({ issued, order, failures, lastError, renewAt }: CertificateLife): string =>
  JSON.stringify([issued, order !== null, failures > 0, lastError, renewAt]);
