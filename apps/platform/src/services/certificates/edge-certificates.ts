// Certificates for edges: a snapshot of all certificates, a single certificate, and answers to ACME challenges. Private keys are
// decrypted for the transfer.
import type { CertificateStore, ChallengeKey, SealedKeys, StoredCertificate } from '@tunnel/certificates/acme';
import { type CertificateLife, certificateState } from '@tunnel/certificates/life';
import type { CertificateSnapshotLine, ChallengeQuestion, ChallengeReply, EdgeCertificate } from '@tunnel/contract';
import type { Clock } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { changeRange } from '../shared/edge-changes.ts';

/**
 * Number of certificate rows per page of the snapshot. The rows of a page are in memory together, and their private keys are decrypted in
 * the same turn of the event loop.
 */
export const CERTIFICATES_PAGE = 50;

/** Store and keys of a platform that orders certificates. */
export interface KeptCertificates {
  readonly store: Pick<CertificateStore, 'findChallenge'>;
  readonly keys: Pick<SealedKeys, 'open'>;
}

export interface EdgeCertificatesContext {
  readonly db: Db;
  readonly clock: Pick<Clock, 'now'>;
  /**
   * Returns null if `[acme]` is off. Throws if `[acme]` is on but certificates are not available yet, because edges must not mistake this
   * for an empty list.
   */
  readonly certificates: () => KeptCertificates | null;
}

interface CertificateRow {
  readonly id: string;
  /** Names of the certificate, separated by spaces. */
  readonly names: string;
  readonly user_id: string | null;
  readonly life: CertificateLife;
  readonly suspended: boolean;
  readonly certificate: StoredCertificate | null;
}

/** Reads certificate rows of the current certificate authority. Rows of other authorities are not used. */
const rowsWhere = async (db: Db, where: ReturnType<typeof sql>, limit: number): Promise<readonly CertificateRow[]> => {
  const { rows } = await sql<CertificateRow>`
    select kept.id, kept.names, kept.user_id, kept.life, kept.suspended, kept.certificate
    from certificates as kept join acme_authority as authority on authority.directory = kept.directory
    where ${where} order by kept.id limit ${limit}
  `.execute(db);
  return rows;
};

const pairOf = async (
  { certificate }: CertificateRow,
  { keys }: Pick<KeptCertificates, 'keys'>,
): Promise<EdgeCertificate['pair']> =>
  certificate === null ? null : { chain: certificate.chain, key: await keys.open(certificate.key) };

const toldOf = async (row: CertificateRow, kept: KeptCertificates, now: number): Promise<EdgeCertificate> => ({
  id: row.id,
  names: row.names.split(' '),
  is_operators: row.user_id === null,
  state: certificateState(row.life, now),
  issuer: row.certificate?.issuer ?? null,
  not_before: row.life.issued?.notBefore ?? null,
  not_after: row.life.issued?.notAfter ?? null,
  renew_at: row.suspended ? null : row.life.renewAt,
  last_error: row.life.lastError,
  pair: await pairOf(row, kept),
});

/**
 * Yields the snapshot of all certificates for an edge, page by page, as fast as the edge reads. Throws if a private key cannot be
 * decrypted. The snapshot then lacks its last line, and the edge keeps its previous certificates.
 */
export async function* certificateLines(
  { db, clock }: Pick<EdgeCertificatesContext, 'db' | 'clock'>,
  kept: KeptCertificates | null,
): AsyncGenerator<readonly CertificateSnapshotLine[], void> {
  // The number of the latest change is read before the rows: changes made while the rows are read have higher numbers, and are sent again
  // by the change stream.
  const { latest } = await changeRange(db);
  yield [{ at: latest }];
  for (let after: string | null = null; kept !== null; ) {
    const later = after === null ? sql`true` : sql`kept.id > ${after}`;
    const rows = await rowsWhere(db, later, CERTIFICATES_PAGE);
    if (rows.length > 0) yield await Promise.all(rows.map((row) => toldOf(row, kept, clock.now())));
    if (rows.length < CERTIFICATES_PAGE) break;
    after = rows.at(-1)?.id ?? null;
  }
  yield [{ end: true }];
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns a certificate with its private key for an edge. Returns null if the certificate does not exist (any more). */
export const edgeCertificate = async (
  { db, clock, certificates }: EdgeCertificatesContext,
  id: string,
): Promise<EdgeCertificate | null> => {
  const kept = certificates();
  if (kept === null || !ID.test(id)) return null;
  const [row] = await rowsWhere(db, sql`kept.id = ${id}`, 1);
  return row === undefined ? null : toldOf(row, kept, clock.now());
};

const keyOf = (question: ChallengeQuestion): ChallengeKey => {
  if ('token' in question) return { token: question.token };
  if ('name' in question) return { name: question.name.toLowerCase() };
  return { tlsName: question.tls_name.toLowerCase() };
};

/**
 * Rate limit for challenge lookups, because every lookup queries the database. Counted per edge, and for requests of authorities at the
 * platform's port. An edge sends at most 25 lookups per second.
 */
export const CHALLENGES = { perSecond: 30, burst: 40, keys: 2000 };

/** Returns the answer to an ACME challenge. dns-01 challenges are never returned, because they are answered by DNS records. */
export const answerChallenge = async (
  { clock, certificates }: Omit<EdgeCertificatesContext, 'db'>,
  question: ChallengeQuestion,
): Promise<ChallengeReply> => {
  const key = keyOf(question);
  const found = (await certificates()?.store.findChallenge(key, clock.now())) ?? null;
  if (found === null || found.type === 'dns-01') return { challenge: null };
  const { type, name, token, keyAuthorization } = found;
  return { challenge: { type, name, token, key_authorization: keyAuthorization } };
};
