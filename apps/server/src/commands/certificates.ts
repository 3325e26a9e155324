// `tunnel-server certificates`: lists and renews automatic certificates next to a running server. For a stack or a platform, the commands
// use the database; for an edge without a platform, the edge's REST API.
import { existsSync } from 'node:fs';
import { request as requestClear } from 'node:http';
import { request as requestTls } from 'node:https';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { type ServerConfig } from '@tunnel/config/server';
import { Fault, nearestWord } from '@tunnel/errors';
import { type ListedCertificate, listCertificates, renewCertificate } from '@tunnel/platform';
import { isLoopbackHost } from '@tunnel/rules/net';
import { systemClock } from '@tunnel/runtime';
import { Command } from 'commander';
import { loadAdminToken, openDataDir, readRunFile } from '../data-dir/data-dir.ts';
import { consoleOperator, sayTo, subcommand, withDatabase } from './database-commands.ts';
import { type JsonFlags, loadConfig, tableText } from './shared.ts';

const clock = systemClock;

/** A certificate in the list. Besides automatic certificates, an edge also lists certificate files and certificates of its local CA. */
type ShownCertificate = Omit<ListedCertificate, 'source'> & { readonly source: 'acme' | 'file' | 'local-ca' };

/** Access to the certificates, through the database or the edge's REST API. */
interface CertificateList {
  list(): Promise<readonly ShownCertificate[]>;
  /** Starts to renew a certificate. Resolves with false if an order for the certificate is already in progress. */
  renew(name: string): Promise<boolean>;
}

export const certificates = (finish: (code: number) => void): Command => {
  const say = sayTo(finish);
  return new Command('certificates')
    .description('List and renew automatic certificates')
    .addCommand(
      subcommand('list', 'List certificates with state, issuer, expiry and renewal', 'certificates list').action(
        async (flags: JsonFlags) => {
          const all = await (await openList(loadConfig(flags, process.env))).list();
          say(flags, certificatesText(all, clock.now()), all);
        },
      ),
    )
    .addCommand(
      subcommand('renew', 'Renew a certificate now', 'certificates renew tunnels.example.com')
        .argument('<name>', 'Any host name of the certificate')
        .action(async (given: string, flags: JsonFlags) => {
          const name = given.toLowerCase().replace(/\.$/, '');
          const kept = await openList(loadConfig(flags, process.env));
          refuseUnknown(name, await kept.list());
          const isBegun = await kept.renew(name);
          const text = isBegun ? `${name}: renewal starts within seconds` : `${name}: renewal is already in progress`;
          say(flags, `${text}. To follow it: tunnel-server certificates list`, { name, begun: isBegun });
        }),
    );
};

/**
 * Throws a fault if no certificate has the name. The fault suggests similar names, because most errors are a wrong letter or a missing
 * label.
 */
export const refuseUnknown = (name: string, all: readonly ShownCertificate[]): void => {
  const known = all.flatMap(({ names }) => names);
  if (known.includes(name)) return;
  const near = [...new Set([nearestWord(name, known), ...known.filter((one) => isRelated(one, name))])]
    .filter((one) => one !== undefined)
    .slice(0, NEAR_SHOWN);
  const hint = near.length === 0 ? '' : `; similar names: ${near.join(', ')}`;
  throw new Fault('CERTIFICATE_UNKNOWN', { name: `${name}${hint}` });
};

const NEAR_SHOWN = 5;

const isRelated = (one: string, name: string): boolean => {
  const plain = one.replace('*.', '');
  return plain.endsWith(`.${name}`) || name.endsWith(`.${plain}`) || plain === name.replace('*.', '');
};

const openList = async (config: ServerConfig): Promise<CertificateList> => {
  const dataDir = await openDataDir(config.data_dir);
  const run = readRunFile(dataDir);
  if (run !== null && run.platform_url === null && run.api_url !== null) return overRest(config, dataDir, run.api_url);
  const hasDatabase = config.database.url.reveal() !== '' || existsSync(join(dataDir, 'postgres'));
  if (run === null && (!hasDatabase || config.server.platform_url !== '')) {
    throw new Fault('SERVER_NOT_RUNNING', { dir: dataDir });
  }
  return {
    list: () => withDatabase(config, { prepared: true }, ({ db }) => listCertificates({ db, clock })),
    renew: (name) =>
      withDatabase(config, { prepared: true }, ({ db }) => renewCertificate({ db, clock }, consoleOperator(), name)),
  };
};

const overRest = (config: ServerConfig, dataDir: string, url: string): CertificateList => {
  const { token } = loadAdminToken(config.auth.admin_token, dataDir);
  const call = (method: 'GET' | 'POST', path: string, body?: object) =>
    callRest(new URL(path, url), { method, token: token.reveal(), domain: config.server.domain, body });
  return {
    list: async () => {
      const { status, text } = await call('GET', '/api/certificates');
      // Older edges have no REST endpoint for certificates.
      if (status === 404) return [];
      if (status !== 200) throw refusalOf(url, text);
      return JSON.parse(text) as readonly ShownCertificate[];
    },
    renew: async (name) => {
      const { status, text } = await call('POST', '/api/certificates/renew', { name });
      if (status === 202) return true;
      if (status === 409 && text.includes('CERTIFICATE_BUSY')) return false;
      throw refusalOf(url, text);
    },
  };
};

interface RestCall {
  readonly method: 'GET' | 'POST';
  readonly token: string;
  readonly domain: string;
  readonly body: object | undefined;
}

const CALL_TIMEOUT_MS = 10_000;

/**
 * Calls the edge's REST API. On this machine, a certificate for a different name is accepted, because the server itself wrote the address
 * to run.json.
 */
export const callRest = (
  url: URL,
  { method, token, domain, body }: RestCall,
): Promise<{ readonly status: number; readonly text: string }> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const given = { method, headers, timeout: CALL_TIMEOUT_MS };
    const tls = { servername: domain, rejectUnauthorized: !isLoopbackHost(url.hostname.replace(/^\[|\]$/g, '')) };
    const call = url.protocol === 'https:' ? requestTls(url, { ...given, ...tls }) : requestClear(url, given);
    call.on('response', (response) => {
      readText(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
    });
    call.on('timeout', () => call.destroy(new Error(`no response within ${CALL_TIMEOUT_MS / 1000} s`)));
    call.on('error', (error) => reject(refusalOf(url.origin, error.message)));
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });

const refusalOf = (url: string, answer: string): Fault => {
  let reason = answer;
  try {
    reason = (JSON.parse(answer) as { error?: string }).error ?? answer;
  } catch {
    // The response is not an error of the API, so its text is shown unchanged.
  }
  return new Fault('SERVER_REFUSED', { url, reason: reason.slice(0, REASON_SHOWN_CHARACTERS) });
};

const REASON_SHOWN_CHARACTERS = 300;

export const certificatesText = (all: readonly ShownCertificate[], now: number): string =>
  all.length === 0
    ? 'no certificates; to issue certificates, set `[acme] enabled = true`'
    : tableText(
        ['NAMES', 'STATE', 'ISSUER', 'EXPIRES IN', 'RENEWS', 'LAST ERROR'],
        all.map((one) => [
          one.names.join(', '),
          one.state,
          one.issuer ?? '-',
          one.not_after === null ? '-' : timeTo(Date.parse(one.not_after), now),
          one.renew_at === null ? '-' : renewalText(Date.parse(one.renew_at), now),
          one.last_error ?? '-',
        ]),
      );

const renewalText = (at: number, now: number): string => (at <= now ? 'now' : `in ${timeTo(at, now)}`);

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Formats the remaining time in a single unit: days from two days on, hours from two hours on, otherwise minutes. */
const timeTo = (at: number, now: number): string => {
  const leftMs = at - now;
  if (leftMs <= 0) return 'expired';
  if (leftMs >= 2 * DAY_MS) return `${Math.floor(leftMs / DAY_MS)} days`;
  if (leftMs >= 2 * HOUR_MS) return `${Math.floor(leftMs / HOUR_MS)} hours`;
  return `${Math.ceil(leftMs / 60_000)} minutes`;
};
