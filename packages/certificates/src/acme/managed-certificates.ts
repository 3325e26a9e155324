// Certificate management by `[acme]` and `[dns]`: creates and connects the authority client, challenge solvers and keeper for a store.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import type { Clock, Logger } from '@tunnel/runtime';
import { ExecChallenges } from '../dns/exec-challenges.ts';
import { DnsLookups } from '../dns/lookups.ts';
import { DnsResponder } from '../dns/responder/dns-responder.ts';
import { AcmeClient } from './client/acme-client.ts';
import { CertificateKeeper, type KeeperListener } from './keeper/certificate-keeper.ts';
import type { CertificateStore } from './keeper/certificate-store.ts';
import { type ChallengeSolver, createStoredSolver } from './keeper/challenge-solver.ts';
import { createDnsSolver } from './keeper/dns-solver.ts';
import { SealedKeys } from './keeper/sealed-keys.ts';

export interface ManagedCertificatesOptions {
  readonly acme: ServerConfig['acme'];
  readonly dns: ServerConfig['dns'];
  /** Domain of the edge: `[server] domain`. */
  readonly domain: string;
  /** Host of the edge (`[server] host`): address of the DNS responder unless `[dns] host` is set. */
  readonly host: string;
  readonly dataDir: string;
  readonly store: CertificateStore;
  /** CNAME target in the edge's zone for the `_acme-challenge` record of a custom domain. Null if the domain has no owner. */
  readonly challengeTargetOf: (name: string) => Promise<string | null>;
  /** Returns whether an open tls tunnel has the host. Its handshakes do not reach the edge, so the host is validated over HTTP. */
  readonly isPassedThrough: (host: string) => boolean | Promise<boolean>;
  readonly clock: Clock;
  /** Random source. Returns a number in [0, 1). */
  readonly random: () => number;
  readonly logger: Logger;
  readonly listener: KeeperListener;
}

export class ManagedCertificates {
  readonly store: CertificateStore;
  readonly keys: SealedKeys;
  readonly #options: ManagedCertificatesOptions;
  readonly #lookups: DnsLookups;
  readonly #responder: DnsResponder | null;
  readonly #keeper: CertificateKeeper;
  #hook: ExecChallenges | null = null;

  /** Throws a fault that names the file if the key file or the CA file cannot be used. */
  constructor(options: ManagedCertificatesOptions) {
    const { acme, dns, domain, host, dataDir, store, clock, random, logger, listener } = options;
    this.#options = options;
    this.store = store;
    const isGiven = acme.storage_key_file !== '';
    this.keys = SealedKeys.open({
      file: isGiven ? acme.storage_key_file : join(dataDir, 'certificate-key'),
      isGiven,
    });
    const client = new AcmeClient({ directory: acme.directory, clock, ca: authorityOf(acme.ca_file) });
    this.#lookups = new DnsLookups({ resolvers: dns.resolvers, clock });
    const at = { host: dns.host === '' ? host : dns.host, port: dns.port };
    this.#responder =
      acme.dns === 'builtin' ? new DnsResponder({ ...at, domain, lookups: this.#lookups, clock }) : null;
    const eab = acme.eab_kid === '' ? undefined : { kid: acme.eab_kid, hmacKey: acme.eab_hmac_key.reveal() };
    this.#keeper = new CertificateKeeper({
      client,
      store,
      keys: this.keys,
      solvers: this.#solvers(),
      profile: acme.profile,
      email: acme.email,
      eab,
      clock,
      random,
      logger,
      listener,
      canTakeWildcards: () => this.canWildcard,
    });
  }

  /** Built-in DNS responder. Null if none is configured, or if its port could not be opened. */
  get responder(): DnsResponder | null {
    return this.#responder === null || this.#responder.port === 0 ? null : this.#responder;
  }

  /** True if wildcard certificates can be ordered, because dns-01 challenges can be answered. */
  get canWildcard(): boolean {
    return this.#options.acme.dns === 'exec' || this.responder !== null;
  }

  /** Starts ordering certificates. If the DNS port cannot be opened, only wildcard certificates are unavailable. */
  async start(): Promise<void> {
    await this.#startResponder();
    this.#keeper.start();
  }

  async stop(): Promise<void> {
    // DNS lookups are closed first, to end work of the keeper that waits for them.
    this.#lookups.close();
    this.#hook?.end();
    await this.#keeper.stop();
    this.#hook?.end();
    await this.#responder?.stop();
  }

  /** Checks for due certificates and starts their orders. */
  wake(): void {
    this.#keeper.wake();
  }

  /** Renews now, regardless of earlier failures. Returns false if the certificate is unknown or already being processed. */
  renew(id: string): Promise<boolean> {
    return this.#keeper.renew(id);
  }

  async #startResponder(): Promise<void> {
    const { logger } = this.#options;
    const responder = this.#responder;
    if (responder === null) return;
    try {
      await responder.start();
      for (const { message } of responder.problems) {
        logger.warn({ reason: message }, 'built-in DNS responder cannot listen on an address');
      }
      const { zone, addresses } = responder;
      logger.info({ zone, addresses }, 'built-in DNS responder started');
    } catch (error) {
      const reason = Fault.from(error).message;
      logger.warn({ reason }, 'built-in DNS responder cannot start; no wildcard certificate is ordered');
    }
  }

  #makeHook(): ExecChallenges {
    const { acme, clock } = this.#options;
    this.#hook = new ExecChallenges({ program: acme.dns_exec, env: process.env, lookups: this.#lookups, clock });
    return this.#hook;
  }

  #solvers(): readonly ChallengeSolver[] {
    const { acme, domain, store, clock, challengeTargetOf, isPassedThrough } = this.#options;
    const stored = acme.challenges.map((type) =>
      type === 'http-01'
        ? createStoredSolver(type, { store, clock })
        : createStoredSolver(type, { store, clock }, async (name) => !(await isPassedThrough(name))),
    );
    if (acme.dns === 'none') return stored;
    const challenges = this.#responder ?? this.#makeHook();
    const dns = createDnsSolver({
      challenges,
      domain,
      challengeTargetOf,
      clock,
      isOpen: () => this.canWildcard,
      sets: acme.dns === 'exec' ? 'anywhere' : 'zone',
    });
    return [...stored, dns];
  }
}

/** Reads the CA file. Returns undefined for the default CAs if no file is configured. */
const authorityOf = (file: string): string | undefined => {
  if (file === '') return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Fault('CONFIG_FILE_UNREADABLE', { file, reason: (error as Error).message }, { cause: error });
  }
};
