// Backend of an edge without a platform. Accepts the admin token and the keys in `[[auth.keys]]`, which do not change while the process
// runs, and manages the ownership of names.

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
    /** Reserved names and ports of the key's account: `shop`, `*.shop`, `tcp/20042`. */
    readonly reserved: readonly string[];
    /** Custom domains of the key's account, without a proof of ownership: the operator vouches for the domains. */
    readonly domains: readonly string[];
  }[];
  /** Settings of the `[names]` section. */
  readonly names: NameTimes;
  /** Folder of names.json. Undefined if names are kept only while the process runs. */
  readonly dataDir?: string | undefined;
  /** Certificates ordered by the edge. Undefined if `[acme]` is off. */
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
    // Always compares all keys, so that the time reveals neither a close match nor the number of keys before the match.
    for (const key of this.#keys) if (equalInConstantTime(key.sha256, given)) found ??= key;
    if (found === undefined) return { ok: false, fault: new Fault('AUTH_TOKEN_INVALID') };
    return { ok: true, owner: found.owner, keyId: found.keyId };
  }

  get reserved(): ReservedNames {
    return this.#names.reserved;
  }

  /** Admits a tunnel by the ownership of its name. Without a platform, the only other limit is the number of tunnels per session. */
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

  /** Never calls the listener, because keys change only with a restart. */
  onRevoked(): () => void {
    return () => {};
  }

  /** Never calls the listener, because domains change only with a restart. */
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
