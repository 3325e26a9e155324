// Certificates of an edge that has no platform: it orders and renews them by itself, into files of its own. Nothing of this is loaded
// unless `[acme]` is on.
import { join } from 'node:path';
import type { CertificateRecord, ChallengeAnswer, ChallengeKey, ManagedCertificates, OrderResult } from '@tunnel/acme';
import { certificateState, challengeTarget } from '@tunnel/core';
import { type Clock, type Logger, type ServerConfig, sha256Hex } from '@tunnel/runtime';
import type { CertificateListener, EdgeCertificates, KnownCertificate, RenewalAnswer } from './edge-certificates.ts';
import { type WantedHere, wantedHere } from './wanted-here.ts';

export interface StandaloneCertificatesOptions {
  readonly config: Pick<ServerConfig, 'acme' | 'dns' | 'server' | 'auth' | 'policy'>;
  readonly dataDir: string;
  /** A live tls tunnel has the host: its handshakes never come here. */
  readonly isPassedThrough: (host: string) => boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

const FOLDER = 'certificates';
/** Of the label in our zone that the challenge of a wildcard's own domain leads to. */
const TARGET_CHARS = 20;

export class StandaloneCertificates implements EdgeCertificates {
  readonly orders: Record<OrderResult, number> = { issued: 0, failed: 0, rate_limited: 0 };
  readonly #options: StandaloneCertificatesOptions;
  #managed: ManagedCertificates | null = null;
  #beginning: Promise<void> | null = null;
  #isStopped = false;
  /** By name: which of them is for it. */
  readonly #names = new Map<string, string>();
  /** Those of the operator's own names, by id. */
  readonly #operators = new Set<string>();
  #listener: CertificateListener = { onPair: () => null, onGone: () => {} };

  constructor(options: StandaloneCertificatesOptions) {
    this.#options = options;
  }

  follow(listener: CertificateListener): void {
    this.#listener = listener;
  }

  async list(): Promise<readonly KnownCertificate[]> {
    const records = (await this.#managed?.store.list()) ?? [];
    return records.map((record) => this.#known(record));
  }

  isWanted(name: string): boolean {
    return this.#names.has(name);
  }

  async findChallenge(key: ChallengeKey): Promise<ChallengeAnswer | null> {
    return (await this.#managed?.store.findChallenge(key, this.#options.clock.now())) ?? null;
  }

  async renew(name: string): Promise<RenewalAnswer> {
    const id = this.#names.get(name);
    if (id === undefined || this.#managed === null) return 'unknown';
    return (await this.#managed.renew(id)) ? 'begun' : 'busy';
  }

  // ---- life ----

  /** What the last run has got. Throws a fault that names the file where the key file, or that of the authority, cannot be used. */
  async start(): Promise<void> {
    const { config, dataDir, clock, random, logger, isPassedThrough } = this.#options;
    const { acme, dns, server } = config;
    const { FileCertificateStore, ManagedCertificates } = await import('@tunnel/acme');
    const store = new FileCertificateStore(join(dataDir, FOLDER), acme.directory);
    this.#managed = new ManagedCertificates({
      ...{ acme, dns, domain: server.domain, host: server.host, dataDir, store },
      // There are no accounts with tokens here: the label is the name's own.
      challengeTargetOf: async (name) => challengeTarget(sha256Hex(name).slice(0, TARGET_CHARS), server.domain),
      ...{ isPassedThrough, clock, random, logger },
      listener: {
        onIssued: (record) => void this.#show(record),
        onOrder: (result) => {
          this.orders[result] += 1;
        },
        onEnding: () => {},
      },
    });
    for (const wanted of this.#wanted(true)) for (const name of wanted.names) this.#names.set(name, '');
    for (const record of await store.list()) await this.#show(record);
  }

  /** The ports are open: authorities may come and look. */
  ready(): void {
    this.#beginning = this.#begin().catch((error: unknown) => {
      this.#options.logger.error({ err: error }, 'certificates are not ordered');
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#beginning;
    await this.#managed?.stop();
  }

  async #begin(): Promise<void> {
    const managed = this.#managed as ManagedCertificates;
    await managed.start();
    if (this.#isStopped) return;
    const { store } = managed;
    const ids = new Set<string>();
    for (const { names, isOperators } of this.#wanted(managed.canWildcard)) {
      const { id } = await store.want(names);
      ids.add(id);
      if (isOperators) this.#operators.add(id);
      for (const name of names) this.#names.set(name, id);
    }
    // A port 53 that is taken today makes no wildcard of yesterday worthless.
    const possible = new Set(this.#wanted(true).map(({ names }) => keyOf(names)));
    for (const { id, names } of await store.list()) {
      if (ids.has(id) || possible.has(keyOf(names))) continue;
      await store.forget(id);
      this.#listener.onGone(id);
    }
    managed.wake();
  }

  #wanted(canWildcard: boolean): readonly WantedHere[] {
    return wantedHere(this.#options.config, canWildcard);
  }

  async #show({ id, names, certificate }: CertificateRecord): Promise<void> {
    const { logger } = this.#options;
    for (const name of names) this.#names.set(name, id);
    if (certificate === null || this.#managed === null) return;
    try {
      const key = Buffer.from(await this.#managed.keys.open(certificate.key));
      const problem = this.#listener.onPair(id, names, { cert: Buffer.from(certificate.chain), key });
      if (problem !== null) throw new Error(problem);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error({ names, reason }, 'a certificate that was kept cannot be used');
    }
  }

  #known({ id, names, life, certificate }: CertificateRecord): KnownCertificate {
    return {
      ...{ id, names, isOperators: this.#operators.has(id) },
      state: certificateState(life, this.#options.clock.now()),
      issuer: certificate?.issuer ?? null,
      notBefore: certificate?.notBefore ?? null,
      notAfter: certificate?.notAfter ?? null,
      ...{ renewAt: life.renewAt, lastError: life.lastError },
    };
  }
}

const keyOf = (names: readonly string[]): string => [...names].sort().join(',');
