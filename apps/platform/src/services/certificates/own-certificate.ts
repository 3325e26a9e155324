// The certificate that the platform shows itself: of those that were issued for the operator, the one that is best for its host.
import type { StoredCertificate } from '@tunnel/certificates/acme';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';

export interface IssuedFor {
  readonly id: string;
  readonly names: readonly string[];
  /** Another one when it was renewed. */
  readonly serial: string;
  readonly notAfter: number;
}

/** Few, and without what is in them. */
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

/** The host's own before the wildcard right above it; of two, the one that ends later. null: none is for it. */
export const bestFor = (issued: readonly IssuedFor[], host: string): IssuedFor | null => {
  const wildcard = `*${host.slice(host.indexOf('.'))}`;
  const byEnd = [...issued].sort((a, b) => b.notAfter - a.notAfter);
  const withName = (name: string): IssuedFor | undefined => byEnd.find(({ names }) => names.includes(name));
  return withName(host) ?? withName(wildcard) ?? null;
};

/** Its key still sealed; null: it is gone. */
export const loadIssued = async (db: Db, id: string): Promise<StoredCertificate | null> => {
  const { rows } = await sql<{ certificate: StoredCertificate | null }>`
    select certificate from certificates where id = ${id}
  `.execute(db);
  return rows[0]?.certificate ?? null;
};
