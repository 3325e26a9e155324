// Looks for the DNS records of an installation with certificates by themselves: all of them when it is ready, and each minute those that are missing, until
// they are there. Nothing waits for it.
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
  /** How often those that are missing are looked for. */
  EVERY_MS: 60_000,
  /** What the authority's directory may take, and be. */
  DIRECTORY_MS: 5000,
  DIRECTORY_MAX_BYTES: 64 * 1024,
  TERMS_MAX_CHARS: 300,
} as const;

export interface RecordsWatchOptions {
  readonly facts: RecordFacts;
  readonly lookups: Pick<DnsLookups, 'addresses' | 'zone' | 'close'>;
  readonly clock: Clock;
  readonly write: (text: string) => void;
  /** Where the authority's terms are, in a line; empty: it has none. */
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
    // A zone that answers is one that is handed on, and whose server is reached.
    const answer = await (record.type === 'NS' ? lookups.zone(record.askedAt) : lookups.addresses(record.askedAt));
    return judgeRecord(record, answer, facts.publicAddresses);
  }
}

/** undefined: this configuration needs no records. */
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
    // A platform that is reached by a port of its own, or none at all, needs no record here.
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

const publicAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => address)
    .filter((address) => problemOfAddress(address, false) === null);

/** They are accepted with `[acme] enabled`: whoever runs this is told which. */
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
