// The checks of `tunnel-server setup`: looks up DNS records, opens and closes each port, and connects to the mail server.
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { addressesFor, DnsLookups } from '@tunnel/certificates/dns';
import { hasHttpsPort, likelyParts, platformHostAtEdge, type ServerConfig } from '@tunnel/config/server';
import { shownText } from '@tunnel/rules/names';
import { systemClock, type Timer } from '@tunnel/runtime';
import { readRunFile } from '../data-dir/data-dir.ts';
import { wantedRecords } from '../run/dns-records.ts';
import { publicAddresses } from '../run/records-watch.ts';
import {
  isIpv6,
  mailVerdict,
  type PortFinding,
  portsOfRun,
  portVerdicts,
  recordVerdict,
  type Verdict,
} from './checks.rules.ts';

const REASON_MAX_CHARS = 200;

/** Time limit for the whole conversation with the mail server. The limits of the transport start again with every line of the server. */
const MAIL_TIMEOUT_MS = 20_000;

/** Runs all checks. Every check has a time limit, so the result takes seconds even without a network. */
export const runChecks = async (config: ServerConfig): Promise<Verdict[]> => {
  return (await Promise.all([checkRecords(config), checkPorts(config), checkMail(config)])).flat();
};

const isEdgeOnly = (config: ServerConfig): boolean => likelyParts(config) === 'edge';

/** Checks the DNS records of a public server. A server for this machine needs no records. */
const checkRecords = async (config: ServerConfig): Promise<Verdict[]> => {
  const { acme, dns, server } = config;
  if (!acme.enabled) return [];
  const own = publicAddresses();
  const lookups = new DnsLookups({ resolvers: dns.resolvers, clock: systemClock });
  try {
    const records = wantedRecords({
      domain: server.domain,
      host: platformHostAtEdge(config) ?? server.domain,
      hasResponder: acme.dns === 'builtin',
      publicAddresses: own,
      randomLabel: `r${randomBytes(8).toString('hex')}`,
    });
    return await Promise.all(
      records.map(async ({ name, type, value, askedAt }) => {
        const answer = await (type === 'NS' ? lookups.zone(askedAt) : lookups.addresses(askedAt));
        return recordVerdict({ name, type, target: value, answer }, { own, listensOnIpv6: isIpv6(server.host) });
      }),
    );
  } finally {
    lookups.close();
  }
};

type WantedPort = Omit<PortFinding, 'problem'>;

/** Returns the fixed ports of a server. Port 0 means any free port, which needs no check. */
export const wantedPorts = (config: ServerConfig): WantedPort[] => {
  const { server, platform, acme, dns } = config;
  const tcp = (key: string, host: string, port: number): WantedPort => ({ key, host, port, transport: 'TCP' });
  const responder = acme.enabled && acme.dns === 'builtin' ? addressesFor(dns.host || server.host) : [];
  return [
    ...responder.flatMap((host) => {
      const one = tcp('[dns] port', host, dns.port);
      return [one, { ...one, transport: 'UDP' as const }];
    }),
    tcp('[server] http_port', server.host, server.http_port),
    ...(hasHttpsPort(config) ? [tcp('[server] https_port', server.host, server.https_port)] : []),
    tcp('[server] control_port', server.host, server.control_port),
    tcp('[server] api_port', server.api_host || server.host, server.api_port),
    tcp('[server] metrics_port', server.metrics_host, server.metrics_port),
    ...(isEdgeOnly(config) ? [] : [tcp('[platform] port', platform.host, platform.port)]),
  ].filter(({ port }) => port !== 0);
};

const checkPorts = async (config: ServerConfig): Promise<Verdict[]> => {
  const ports = wantedPorts(config).map(async (port) => ({ ...port, problem: await problemOfPort(port) }));
  // A server that is already running with this data directory has opened the ports itself.
  const run = readRunFile(resolve(config.data_dir));
  return portVerdicts(await Promise.all(ports), run === null ? new Set() : portsOfRun(run));
};

/** Opens and closes a port. Resolves with the error code, or with null if the port is free. */
const problemOfPort = ({ host, port, transport }: WantedPort): Promise<string | null> =>
  new Promise((answered) => {
    const onError = ({ code, message }: NodeJS.ErrnoException): void => answered(code ?? message);
    if (transport === 'TCP') {
      const server = createServer();
      server.once('error', onError).listen({ host, port }, () => server.close(() => answered(null)));
      return;
    }
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.once('error', onError).bind({ address: host, port }, () => socket.close(() => answered(null)));
  });

const checkMail = async (config: ServerConfig): Promise<Verdict[]> => {
  const { mail } = config.platform;
  if (isEdgeOnly(config)) return [];
  if (mail.transport !== 'smtp') return [mailVerdict({ host: null, problem: null })];
  const { host } = new URL(mail.smtp_url.reveal());
  const { SmtpTransport } = await import('@tunnel/platform');
  const transport = new SmtpTransport({ url: mail.smtp_url, from: mail.from });
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new Error(`no complete response within ${MAIL_TIMEOUT_MS / 1000} s`);
    timer = systemClock.setTimeout(() => reject(error), MAIL_TIMEOUT_MS);
  });
  try {
    await Promise.race([transport.verify(), late]);
    return [mailVerdict({ host, problem: null })];
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [mailVerdict({ host, problem: shownText(reason, REASON_MAX_CHARS) })];
  } finally {
    timer?.cancel();
    transport.close();
  }
};
