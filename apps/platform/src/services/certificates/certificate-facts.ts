// Facts from the configuration and the database that determine the required certificates.
import { isIP } from 'node:net';
import { challengeTarget } from '@tunnel/certificates/domains';
import { type CertificateFacts, type CertifiedDomain, type CertifiedName } from '@tunnel/certificates/life';
import { publicPorts, type ServerConfig } from '@tunnel/config/server';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';

/**
 * Maximum number of reserved names considered for separate certificates where no wildcard covers the names. The oldest names come first.
 */
const CERTIFIED_NAMES_MAX = 10_000;

type OperatorsFacts = Pick<CertificateFacts, 'domain' | 'platformHost' | 'hasLogin' | 'dns'>;

export const operatorsFacts = (config: ServerConfig): OperatorsFacts => ({
  domain: config.server.domain,
  platformHost: platformHostOf(config),
  hasLogin: config.policy.login.length > 0,
  dns: config.acme.dns,
});

const HTTPS_PORT = 443;

/**
 * Hostname of the platform for which a certificate is needed. Returns null if no authority issues certificates for the hostname, or if
 * its TLS handshakes end at another server.
 */
const platformHostOf = ({ platform, server }: ServerConfig): string | null => {
  const { protocol, hostname, port } = new URL(platform.public_url);
  if (protocol !== 'https:' || isIP(hostname.replace(/^\[|\]$/g, '')) !== 0 || !hostname.includes('.')) return null;
  const shown = port === '' ? HTTPS_PORT : Number(port);
  const { https } = publicPorts(server);
  return platform.tls || https === 0 || shown === https ? hostname : null;
};

/** Reads the custom domains that are verified or were verified earlier. */
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

/**
 * Reads the reserved names that may need certificates. `wildcardsAlone`: only wildcard names, because a wildcard certificate covers
 * single names already.
 */
export const readReserved = async (db: Db, wildcardsAlone: boolean): Promise<readonly CertifiedName[]> => {
  const rows = db
    .selectFrom('names')
    .select(['label', 'user_id'])
    .where('kind', '=', 'subdomain')
    .where('state', '=', 'reserved')
    // First the oldest name of every account, then the second, so that an account with very many names does not displace other accounts.
    .orderBy(sql`row_number() over (partition by user_id order by created_at)`)
    .orderBy('created_at')
    .limit(CERTIFIED_NAMES_MAX);
  const found = await (wildcardsAlone ? rows.where('label', 'like', '*.%') : rows).execute();
  return found.map(({ label, user_id: accountId }) => ({ label, accountId }));
};

/**
 * Returns the CNAME target for a wildcard's DNS challenge record, derived from the token of the account with the verified domain. Returns
 * null if no account has verified the wildcard.
 */
export const findChallengeTarget = async (db: Db, host: string, domain: string): Promise<string | null> => {
  const row = await db
    .selectFrom('own_domains')
    .select('token')
    .where('name', '=', `*.${host}`)
    .where('state', '=', 'verified')
    .executeTakeFirst();
  return row === undefined ? null : challengeTarget(row.token, domain);
};

/** Returns true if an open TLS tunnel serves the host. In the log, a TLS tunnel is a tcp tunnel with a name. */
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
