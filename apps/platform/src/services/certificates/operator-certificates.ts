// Certificate commands for the operator at the console: list all certificates, and renew a certificate manually. The commands run beside
// a running platform, which performs the renewal.
import { type CertificateLife, transitionCertificate } from '@tunnel/certificates/life';
import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import type { OperatorActor, OperatorContext } from '../shared/service-context.ts';
import { certificateView } from './certificate-views.ts';
import { PostgresCertificateStore } from './postgres-certificate-store.ts';

export interface ListedCertificate extends ReturnType<typeof certificateView> {
  readonly names: readonly string[];
  /** Source of the certificate: an order over ACME. */
  readonly source: 'acme';
}

interface Row {
  readonly id: string;
  readonly directory: string;
  /** Names of the certificate, separated by spaces. */
  readonly names: string;
  readonly life: unknown;
  readonly suspended: boolean;
  readonly certificate: unknown;
}

/** Reads the certificate rows of the current certificate authority, without private keys. */
const rowsOf = async (db: Db): Promise<readonly Row[]> => {
  const { rows } = await sql<Row>`
    select kept.id, kept.directory, kept.names, kept.life, kept.suspended,
      jsonb_build_object('issuer', kept.certificate -> 'issuer') as certificate
    from certificates as kept join acme_authority as authority on authority.directory = kept.directory
    order by (kept.user_id is not null), kept.names
  `.execute(db);
  return rows;
};

/** Lists certificates: first the operator's certificates, then the certificates of accounts, ordered by name. */
export const listCertificates = async ({ db, clock }: OperatorContext): Promise<readonly ListedCertificate[]> =>
  (await rowsOf(db)).map((row) => ({
    names: row.names.split(' '),
    source: 'acme' as const,
    ...certificateView(row, clock.now()),
  }));

/** Requests a renewal of the certificate for a name. Returns false if an order is already in progress. Throws CERTIFICATE_UNKNOWN. */
export const renewCertificate = async (
  { db, clock }: OperatorContext,
  operator: OperatorActor,
  name: string,
): Promise<boolean> => {
  const row = (await rowsOf(db)).find(({ names }) => names.split(' ').includes(name));
  if (row === undefined) throw new Fault('CERTIFICATE_UNKNOWN', { name });
  const now = clock.now();
  const ask = (life: CertificateLife): CertificateLife =>
    transitionCertificate(life, { kind: 'renewal-asked' }, now, 0)[0];
  const isAsked = await new PostgresCertificateStore({ db, directory: row.directory }).change(row.id, now, ask);
  if (isAsked) {
    await writeAudit(db, { actor: actorName(operator), action: 'certificate.renewal-asked', details: { name } });
  }
  return isAsked;
};
