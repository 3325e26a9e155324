// The backend of an edge that runs alone: the admin token and the keys of `[[auth.keys]]`, fixed for the life of the process, and whose names are.

import { Fault } from '@tunnel/errors';
import type { Owner } from '@tunnel/rules/tunnels';
import { type Clock, equalInConstantTime, type Logger, type Secret, sha256Hex } from '@tunnel/runtime';
import type { Backend, KeyVerdict, TunnelAdmissionRequest, TunnelClosed, TunnelOpened } from './backend.ts';
import type { StandaloneCertificates } from './certificates/standalone-certificates.ts';
import type { ReservedNames } from './names/reserved-names.ts';
import { type NameTimes, StandaloneNames } from './names/standalone-names.ts';

interface ConfiguredKey {
  readonly sha256: string;
  readonly owner: Owner;
  readonly keyId: string;
}

interface StandaloneOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly adminToken: Secret;
  readonly keys: readonly {
    readonly account: string;
    readonly sha256: string;
    /** Names and ports: `shop`, `*.shop`, `tcp/20042`. */
    readonly reserved: readonly string[];
    /** Own domains, by the operator's word. */
    readonly domains: readonly string[];
  }[];
  /** `[names]`. */
  readonly names: NameTimes;
  /** Holds names.json; absent: names last as long as the process. */
  readonly dataDir?: string | undefined;
  /** Absent: `[acme]` is off. */
  readonly certificates?: StandaloneCertificates | undefined;
}

const KEY_ID_HEX_DIGITS = 8;

export class StandaloneBackend implements Backend {
  readonly #keys: readonly ConfiguredKey[];
  readonly #names: StandaloneNames;
  readonly certificates: StandaloneCertificates | undefined;

  constructor(options: StandaloneOptions) {
    this.certificates = options.certificates;
    this.#names = new StandaloneNames({ ...options, rules: options.names, dataDir: options.dataDir });
    const admin: ConfiguredKey = {
      sha256: sha256Hex(options.adminToken.reveal()),
      owner: { kind: 'operator' },
      keyId: 'admin',
    };
    this.#keys = [admin, ...options.keys.map(toConfiguredKey)];
  }

  async verifyKey(token: string): Promise<KeyVerdict> {
    if (token === '') return { ok: false, fault: new Fault('AUTH_TOKEN_MISSING') };
    const given = sha256Hex(token);
    let found: ConfiguredKey | undefined;
    // All of them, always: the time taken does not tell which key came near, or how many there are before it.
    for (const key of this.#keys) if (equalInConstantTime(key.sha256, given)) found ??= key;
    if (found === undefined) return { ok: false, fault: new Fault('AUTH_TOKEN_INVALID') };
    return { ok: true, owner: found.owner, keyId: found.keyId };
  }

  get reserved(): ReservedNames {
    return this.#names.reserved;
  }

  /** The limit of a session, and whose the name is, are all there is. */
  async admitTunnel(asked: TunnelAdmissionRequest): Promise<Fault | null> {
    return this.#names.admit(asked);
  }

  admissionEnded(tunnelId: string): void {
    this.#names.admissionEnded(tunnelId);
  }

  tunnelOpened({ tunnelId }: TunnelOpened): void {
    this.#names.opened(tunnelId);
  }

  tunnelClosed({ tunnelId }: TunnelClosed): void {
    this.#names.closed(tunnelId);
  }

  streamEnded(): void {}

  /** Keys change only with a restart. */
  onRevoked(): () => void {
    return () => {};
  }

  /** Domains likewise. */
  onDomainsChanged(): () => void {
    return () => {};
  }

  async start(): Promise<void> {
    await this.#names.start();
    await this.certificates?.start();
  }

  ready(): void {
    this.certificates?.ready();
  }

  async stop(): Promise<void> {
    await this.certificates?.stop();
    await this.#names.stop();
  }
}

const toConfiguredKey = ({
  account,
  sha256,
}: {
  readonly account: string;
  readonly sha256: string;
}): ConfiguredKey => ({
  sha256,
  owner: { kind: 'account', accountId: account },
  keyId: sha256.slice(0, KEY_ID_HEX_DIGITS),
});
