// What decides which certificates there should be, as the configuration and the tables have it.
import { isIP } from 'node:net';
import { challengeTarget } from '@tunnel/certificates/domains';
import { type CertificateFacts, type CertifiedDomain, type CertifiedName } from '@tunnel/certificates/life';
import type { ServerConfig } from '@tunnel/config/server';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';

/** Reserved names that are looked at for certificates of their own, oldest first, where no wildcard covers them. */
const CERTIFIED_NAMES_MAX = 10_000;

type OperatorsFacts = Pick<CertificateFacts, 'domain' | 'platformHost' | 'hasLogin' | 'dns'>;

export const operatorsFacts = (config: ServerConfig): OperatorsFacts => ({
  domain: config.server.domain,
  platformHost: platformHostOf(config),
  hasLogin: config.policy.login.length > 0,
  dns: config.acme.dns,
});

const HTTPS_PORT = 443;

/** null: a name that no authority knows, or one whose handshakes end elsewhere. */
const platformHostOf = ({ platform, server }: ServerConfig): string | null => {
  const { protocol, hostname, port } = new URL(platform.public_url);
  if (protocol !== 'https:' || isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 || !hostname.includes('.')) return null;
  const shown = port === '' ? HTTPS_PORT : Number(port);
  return platform.tls || server.https_port === 0 || shown === server.https_port ? hostname : null;
};

/** Those that are proven, and those that were. */
export const readDomains = async (db: Db): Promise<readonly CertifiedDomain[]> => {
  const rows = await db
    .selectFrom('own_domains')
    .select(['name', 'user_id', 'wants_certificate', 'state'])
    .where('state', 'in', ['verified', 'lapsed'])
    .orderBy('created_at')
    .execute();
  return rows.map((row) => ({
    name: row.name,
    accountId: row.user_id,
    wantsCertificate: row.wants_certificate,
    state: row.state === 'lapsed' ? 'lapsed' : 'verified',
  }));
};

/** `wildcardsAlone`: single names are covered already. */
export const readReserved = async (db: Db, wildcardsAlone: boolean): Promise<readonly CertifiedName[]> => {
  const rows = db
    .selectFrom('names')
    .select(['label', 'user_id'])
    .where('kind', '=', 'subdomain')
    .where('state', '=', 'reserved')
    // The first of each account, then the second: an account with very many leaves the others theirs.
    .orderBy(sql`row_number() over (partition by user_id order by created_at)`)
    .orderBy('created_at')
    .limit(CERTIFIED_NAMES_MAX);
  const found = await (wildcardsAlone ? rows.where('label', 'like', '*.%') : rows).execute();
  return found.map(({ label, user_id: accountId }) => ({ label, accountId }));
};

/** Where the record for a wildcard's challenge leads, by the token of the account that has proven it; null: nobody has. */
export const findChallengeTarget = async (db: Db, host: string, domain: string): Promise<string | null> => {
  const row = await db
    .selectFrom('own_domains')
    .select('token')
    .where('name', '=', `*.${host}`)
    .where('state', '=', 'verified')
    .executeTakeFirst();
  return row === undefined ? null : challengeTarget(row.token, domain);
};

/** A living tls tunnel has the host: in the log it is one of tcp with a name. */
export const isPassedThrough = async (db: Db, host: string): Promise<boolean> => {
  const wildcard = host.replace(/^[^.]*/, '*');
  const row = await db
    .selectFrom('tunnel_log')
    .select('id')
    .where('unregistered_at', 'is', null)
    .where('protocol', '=', 'tcp')
    .where('label', 'in', [host, wildcard])
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
};
