// Watches the DNS records of a server with automatic certificates. Looks up all records when the server is ready, and then missing
// records every minute until all are found. The server does not wait for the lookups.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { createSecureContext, rootCertificates } from 'node:tls';
import type { DnsLookups } from '@tunnel/certificates/dns';
import { platformHostAtEdge, type ServerConfig } from '@tunnel/config/server';
import { shownText } from '@tunnel/rules/names';
import { problemOfAddress } from '@tunnel/rules/net';
import { type Clock, requestOnce, type Timer } from '@tunnel/runtime';
import { VERSION } from '../bundle.ts';
import {
  foundText,
  judgeRecord,
  type RecordFacts,
  recordsText,
  type WantedRecord,
  wantedRecords,
} from './dns-records.ts';

const WATCH_BOUNDS = {
  /** Interval at which missing records are looked up. */
  EVERY_MS: 60_000,
  /** Limits for fetching the directory of the certificate authority: time, and size in bytes. */
  DIRECTORY_MS: 5000,
  DIRECTORY_MAX_BYTES: 64 * 1024,
  TERMS_MAX_CHARS: 300,
} as const;

export interface RecordsWatchOptions {
  readonly facts: RecordFacts;
  readonly lookups: Pick<DnsLookups, 'addresses' | 'zone' | 'close'>;
  readonly clock: Clock;
  readonly write: (text: string) => void;
  /** Returns a line with the URL of the certificate authority's terms of service. Empty if the authority has no terms. */
  readonly terms: () => Promise<string>;
}

export class RecordsWatch {
  readonly #options: RecordsWatchOptions;
  #missing: readonly WantedRecord[] = [];
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: RecordsWatchOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { facts, write, terms } = this.#options;
    const records = wantedRecords(facts);
    const [looks, ofTerms] = await Promise.all([Promise.all(records.map((record) => this.#look(record))), terms()]);
    if (this.#isStopped) return;
    write(`${recordsText(records, looks)}${ofTerms}\n`);
    this.#missing = records.filter((_, at) => looks[at]?.kind !== 'found');
    this.#lookLater();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#options.lookups.close();
  }

  #lookLater(): void {
    if (this.#missing.length === 0) return this.stop();
    this.#timer = this.#options.clock.setTimeout(() => void this.#lookAgain(), WATCH_BOUNDS.EVERY_MS);
  }

  async #lookAgain(): Promise<void> {
    const looked = await Promise.all(this.#missing.map(async (record) => ({ record, look: await this.#look(record) })));
    if (this.#isStopped) return;
    for (const { record, look } of looked) {
      if (look.kind === 'found') this.#options.write(foundText(record, look.shown));
    }
    this.#missing = looked.filter(({ look }) => look.kind === 'missing').map(({ record }) => record);
    this.#lookLater();
  }

  async #look(record: WantedRecord): Promise<ReturnType<typeof judgeRecord>> {
    const { facts, lookups } = this.#options;
    // If the zone responds, the NS record delegates the zone and its name server is reachable.
    const answer = await (record.type === 'NS' ? lookups.zone(record.askedAt) : lookups.addresses(record.askedAt));
    return judgeRecord(record, answer, facts.publicAddresses);
  }
}

/** Starts to watch the DNS records. Returns undefined if the configuration needs no records. */
export const watchRecords = async (
  config: ServerConfig,
  clock: Clock,
  write: (text: string) => void,
): Promise<RecordsWatch | undefined> => {
  const { acme, dns, server } = config;
  if (!acme.enabled) return undefined;
  const { DnsLookups: Lookups } = await import('@tunnel/certificates/dns');
  const facts: RecordFacts = {
    domain: server.domain,
    // A platform with a separate port, and a server without a platform, need no DNS record for the platform.
    host: platformHostAtEdge(config) ?? server.domain,
    hasResponder: acme.dns === 'builtin',
    publicAddresses: publicAddresses(),
    randomLabel: `r${randomBytes(8).toString('hex')}`,
  };
  const lookups = new Lookups({ resolvers: dns.resolvers, clock });
  const watch = new RecordsWatch({ facts, lookups, clock, write, terms: () => termsLine(acme) });
  void watch.start();
  return watch;
};

/** Addresses of this machine that are reachable from the internet. Empty behind NAT. */
export const publicAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => address)
    .filter((address) => problemOfAddress(address, false) === null);

/** Returns a line with the certificate authority's terms of service, so that the operator knows which terms `[acme] enabled` accepts. */
export const termsLine = async ({ directory, ca_file }: ServerConfig['acme']): Promise<string> => {
  const url = new URL(directory);
  try {
    const { status, body } = await requestOnce({
      url,
      method: 'GET',
      headers: { accept: 'application/json', 'user-agent': `tunnel-server/${VERSION}` },
      addresses: null,
      maxBytes: WATCH_BOUNDS.DIRECTORY_MAX_BYTES,
      secureContext: () =>
        createSecureContext(ca_file === '' ? {} : { ca: [...rootCertificates, readFileSync(ca_file)] }),
      signal: AbortSignal.timeout(WATCH_BOUNDS.DIRECTORY_MS),
    });
    if (status !== 200) throw new Error(`status ${status}`);
    const { meta } = JSON.parse(body.toString()) as { readonly meta?: { readonly termsOfService?: unknown } };
    const terms = meta?.termsOfService;
    const shown = typeof terms === 'string' ? shownText(terms, WATCH_BOUNDS.TERMS_MAX_CHARS) : 'none';
    return `Certificates are issued by ${url.host}. You accept its terms of service: ${shown}\n`;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return `Certificates are issued by ${url.host}. Its terms of service could not be read: ${shownText(reason, WATCH_BOUNDS.TERMS_MAX_CHARS)}\n`;
  }
};
