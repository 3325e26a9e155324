// Numbers of certificates by state, for metrics.
import { type CertificateState, certificateState } from '@tunnel/certificates/life';
import type { Db } from '../../db/database.ts';
import { certificateLife } from './certificate-rows.ts';

const STATES: readonly CertificateState[] = ['none', 'ordering', 'valid', 'renewing', 'failing'];

export interface CertificateFigures {
  readonly states: ReadonlyMap<CertificateState, number>;
  /** Seconds since the longest overdue certificate was due. A few minutes during an order; more if no process works on it. */
  readonly dueSecs: number;
}

export const certificateFigures = async (db: Db, now: number): Promise<CertificateFigures> => {
  const rows = await db
    .selectFrom('certificates as row')
    .innerJoin('acme_authority as authority', 'authority.directory', 'row.directory')
    .select(['row.life', 'row.due_at', 'row.suspended', 'row.created_at'])
    .execute();
  const states = new Map(STATES.map((state) => [state, 0]));
  let dueSecs = 0;
  for (const row of rows) {
    const state = certificateState(certificateLife(row), now);
    states.set(state, (states.get(state) ?? 0) + 1);
    // A new certificate is due since time zero, so the creation time counts.
    const since = Math.max(row.due_at.getTime(), row.created_at.getTime());
    if (!row.suspended) dueSecs = Math.max(dueSecs, (now - since) / 1000);
  }
  return { states, dueSecs };
};
