// The platform's TLS certificate: the most suitable of the certificates issued for the operator.
import type { StoredCertificate } from '@tunnel/certificates/acme';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';

export interface IssuedFor {
  readonly id: string;
  readonly names: readonly string[];
  /** Serial number of the certificate, which changes with every renewal. */
  readonly serial: string;
  readonly notAfter: number;
}

/** Lists the certificates issued for the operator, which are few, without chains and keys. */
export const operatorsIssued = async (db: Db): Promise<readonly IssuedFor[]> => {
  const { rows } = await sql<{ id: string; names: string; serial: string; not_after: string }>`
    select kept.id, kept.names, kept.certificate ->> 'serial' as serial, kept.certificate ->> 'notAfter' as not_after
    from certificates as kept join acme_authority as authority on authority.directory = kept.directory
    where kept.user_id is null and kept.certificate is not null
  `.execute(db);
  return rows.map(({ id, names, serial, not_after }) => ({
    id,
    serial,
    names: names.split(' '),
    notAfter: Number(not_after),
  }));
};

/**
 * Selects the certificate for a host: a certificate with the exact name, otherwise with the wildcard directly above. Of several
 * certificates, the latest to expire wins. Returns null if no certificate matches.
 */
export const bestFor = (issued: readonly IssuedFor[], host: string): IssuedFor | null => {
  const wildcard = `*${host.slice(host.indexOf('.'))}`;
  const byEnd = [...issued].sort((a, b) => b.notAfter - a.notAfter);
  const withName = (name: string): IssuedFor | undefined => byEnd.find(({ names }) => names.includes(name));
  return withName(host) ?? withName(wildcard) ?? null;
};

/** Loads an issued certificate with its encrypted private key. Returns null if the certificate no longer exists. */
export const loadIssued = async (db: Db, id: string): Promise<StoredCertificate | null> => {
  const { rows } = await sql<{ certificate: StoredCertificate | null }>`
    select certificate from certificates where id = ${id}
  `.execute(db);
  return rows[0]?.certificate ?? null;
};
