// Certificates of an edge without a platform: the edge orders and renews certificates and stores the certificates in files. The code for
// ordering is loaded only if `[acme]` is on.

import { join } from 'node:path';
import type { CertificateRecord, ChallengeAnswer, ManagedCertificates, OrderResult } from '@tunnel/certificates/acme';
import { challengeTarget } from '@tunnel/certificates/domains';
import {
  type CertificateFacts,
  certificateState,
  type WantedCertificate,
  wantedCertificates,
} from '@tunnel/certificates/life';
import { type ServerConfig } from '@tunnel/config/server';
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { type Clock, type Logger, sha256Hex, type Timer } from '@tunnel/runtime';
import type {
  AskedChallenge,
  CertificateListener,
  EdgeCertificates,
  KnownCertificate,
  RenewalAnswer,
} from './edge-certificates.ts';

/** Interval at which an edge without a platform determines the wanted certificates. */
const CERTIFICATES_LOOK_MS = 60_000;

export interface StandaloneCertificatesOptions {
  readonly config: Pick<ServerConfig, 'acme' | 'dns' | 'server' | 'auth' | 'policy'>;
  readonly dataDir: string;
  /** Whether an open tls tunnel has the host. The edge then does not terminate the host's TLS handshakes. */
  readonly isPassedThrough: (host: string) => boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
}

const FOLDER = 'certificates';
/** Length of the first label in the DNS name to which the `_acme-challenge` record of a custom domain with a wildcard points. */
const TARGET_CHARS = 20;
/**
 * Budget for certificates of single names. Without a platform, the operator decides about all names, so accounts have no separate shares.
 */
const NAMES = { max: RULE_LIMITS.CERTIFICATE_NAMES_MAX, windowMs: RULE_LIMITS.CERTIFICATE_NAMES_WINDOW_MS };

export class StandaloneCertificates implements EdgeCertificates {
  readonly orders: Record<OrderResult, number> = { issued: 0, failed: 0, rate_limited: 0 };
  readonly #options: StandaloneCertificatesOptions;
  #managed: ManagedCertificates | null = null;
  #beginning: Promise<void> | null = null;
  #settling: Promise<void> = Promise.resolve();
  #looking: Timer | undefined;
  #isStopped = false;
  /** Certificate id by name. */
  readonly #names = new Map<string, string>();
  /** Ids of the certificates for the operator's names. */
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

  async findChallenge(key: AskedChallenge): Promise<ChallengeAnswer | null> {
    return (await this.#managed?.store.findChallenge(key, this.#options.clock.now())) ?? null;
  }

  async renew(name: string): Promise<RenewalAnswer> {
    const id = this.#names.get(name);
    if (id === undefined || this.#managed === null) return 'unknown';
    return (await this.#managed.renew(id)) ? 'begun' : 'busy';
  }

  // ---- life ----

  /** Loads the certificates from the last run. Throws a fault that names the file if the key file or the CA file is unusable. */
  async start(): Promise<void> {
    const { config, dataDir, clock, random, logger, isPassedThrough } = this.#options;
    const { acme, dns, server } = config;
    const { FileCertificateStore, ManagedCertificates } = await import('@tunnel/certificates/acme');
    const store = new FileCertificateStore(join(dataDir, FOLDER), acme.directory);
    this.#managed = new ManagedCertificates({
      acme,
      dns,
      domain: server.domain,
      host: server.host,
      dataDir,
      store,
      // Without a platform, accounts have no challenge tokens, so the label in the challenge's DNS name is derived from the domain.
      challengeTargetOf: async (name) => challengeTarget(sha256Hex(name).slice(0, TARGET_CHARS), server.domain),
      isPassedThrough,
      clock,
      random,
      logger,
      listener: {
        onIssued: (record) => void this.#show(record),
        onOrder: (result) => {
          this.orders[result] += 1;
          this.#look();
        },
        onEnding: () => {},
      },
    });
    for (const record of await store.list()) await this.#show(record);
  }

  /** Called when the ports are open, so that certificate authorities can validate names. */
  ready(): void {
    this.#beginning = this.#begin().catch((error: unknown) => {
      this.#options.logger.error({ err: error }, 'cannot start ordering certificates');
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#looking?.cancel();
    await this.#beginning;
    await this.#settling;
    await this.#managed?.stop();
  }

  async #begin(): Promise<void> {
    const { clock, logger } = this.#options;
    await this.#managed?.start();
    if (this.#isStopped) return;
    // Regular checks are needed because the wanted certificates also change over time, for example when the weekly budget refills or a
    // wildcard order fails.
    this.#looking = clock.setInterval(() => this.#look(), CERTIFICATES_LOOK_MS);
    await this.#settle();
    logger.debug({ names: [...this.#names.keys()] }, 'managing certificates');
  }

  /** Queues a check of the wanted certificates. Checks run one after the other. */
  #look(): void {
    if (this.#isStopped) return;
    this.#settling = this.#settling
      .then(() => this.#settle())
      .catch((error: unknown) => this.#options.logger.error({ err: error }, 'cannot order certificates'));
  }

  /** Orders all wanted certificates that are missing, and removes unwanted certificates. */
  async #settle(): Promise<void> {
    const { store } = this.#managed as ManagedCertificates;
    const records = new Map((await store.list()).map((record) => [record.names.join(), record]));
    const wanted = wantedCertificates(this.#facts(records));
    for (const one of wanted) {
      const record = records.has(one.name) ? await store.want([one.name], one.accountId) : await this.#order(one);
      if (record === null) continue;
      records.delete(one.name);
      this.#names.set(one.name, record.id);
      if (one.accountId === null) this.#operators.add(record.id);
    }
    for (const { id, names } of records.values()) await this.#forget(id, names);
    this.#managed?.wake();
  }

  /** Orders a certificate. Returns null if the edge does not order the certificate, or if the weekly budget is used up. */
  async #order({ name, accountId, keeping, isCounted }: WantedCertificate): Promise<CertificateRecord | null> {
    const { store } = this.#managed as ManagedCertificates;
    if (keeping !== 'ordered') return null;
    const now = this.#options.clock.now();
    if (isCounted && (await store.takeFromBudget('names', NAMES, now, accountId)).kind === 'empty') return null;
    return store.want([name], accountId);
  }

  async #forget(id: string, names: readonly string[]): Promise<void> {
    await this.#managed?.store.forget(id);
    for (const name of names) if (this.#names.get(name) === id) this.#names.delete(name);
    this.#operators.delete(id);
    this.#listener.onGone(id);
  }

  #facts(records: ReadonlyMap<string, CertificateRecord>): CertificateFacts {
    const { server, auth, policy, acme } = this.#options.config;
    const { domain } = server;
    const record = records.get(`*.${domain}`);
    const isValid = (record?.certificate?.notAfter ?? 0) > this.#options.clock.now();
    return {
      domain,
      platformHost: null,
      hasLogin: policy.login.length > 0,
      dns: acme.dns,
      canWildcard: this.#managed?.canWildcard ?? false,
      wildcard: record === undefined ? null : { isValid, hasFailed: record.life.failures > 0 },
      // The operator vouches for the domains, so no proof of ownership is needed.
      domains: auth.keys.flatMap(({ account: accountId, domains }) =>
        domains.map((name) => ({ name, accountId, wantsCertificate: true, state: 'verified' as const })),
      ),
      reserved: auth.keys.flatMap(({ account: accountId, reserved }) =>
        reserved.filter((label) => !label.includes('/')).map((label) => ({ label, accountId })),
      ),
    };
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
      logger.error({ names, reason }, 'stored certificate cannot be used');
    }
  }

  #known({ id, names, life, certificate }: CertificateRecord): KnownCertificate {
    return {
      id,
      names,
      isOperators: this.#operators.has(id),
      state: certificateState(life, this.#options.clock.now()),
      issuer: certificate?.issuer ?? null,
      notBefore: certificate?.notBefore ?? null,
      notAfter: certificate?.notAfter ?? null,
      renewAt: life.renewAt,
      lastError: life.lastError,
    };
  }
}
