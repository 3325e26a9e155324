// What edges are told of certificates: all of them, or one, each with its key opened for the way; and the answers to challenges.
import type { CertificateStore, ChallengeKey, SealedKeys, StoredCertificate } from '@tunnel/certificates/acme';
import { type CertificateLife, certificateState } from '@tunnel/certificates/life';
import type { CertificateSnapshotLine, ChallengeQuestion, ChallengeReply, EdgeCertificate } from '@tunnel/contract';
import type { Clock } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { changeRange } from '../shared/edge-changes.ts';

/** Rows of the snapshot of certificates that are in memory at once; each has a key to be opened, and all of a page are one turn of the loop. */
export const CERTIFICATES_PAGE = 50;

/** Of a platform that orders certificates. */
export interface KeptCertificates {
  readonly store: Pick<CertificateStore, 'findChallenge'>;
  readonly keys: Pick<SealedKeys, 'open'>;
}

export interface EdgeCertificatesContext {
  readonly db: Db;
  readonly clock: Pick<Clock, 'now'>;
  /** null: `[acme]` is off. Throws while it is on and they cannot be told: nobody is to take that for none. */
  readonly certificates: () => KeptCertificates | null;
}

interface CertificateRow {
  readonly id: string;
  /** Separated by spaces. */
  readonly names: string;
  readonly user_id: string | null;
  readonly life: CertificateLife;
  readonly suspended: boolean;
  readonly certificate: StoredCertificate | null;
}

/** Rows of the authority that is in use: those of another one are nobody's. */
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
 * A page at a time, as fast as the edge takes it. Throws where a key cannot be opened: one that breaks off has no last line, and edges go on with what they
 * have.
 */
export async function* certificateLines(
  { db, clock }: Pick<EdgeCertificatesContext, 'db' | 'clock'>,
  kept: KeptCertificates | null,
): AsyncGenerator<readonly CertificateSnapshotLine[], void> {
  // First: what changes while the rows are read comes after this number, and is told again by the stream.
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

/** null: there is none (any more). */
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

/** Questions for challenges of one edge, and of authorities at the platform's own port: each asks the database. An edge asks at most 25 a second. */
export const CHALLENGES = { perSecond: 30, burst: 40, keys: 2000 };

/** What dns-01 waits for is nobody's to ask for here: it is a record of DNS. */
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
