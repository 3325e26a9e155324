// The backend of an edge that runs alone: the admin token and the keys of `[[auth.keys]]`, fixed for the life of the process.
import type { Owner } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { equalInConstantTime, type Secret, sha256Hex } from '@tunnel/runtime';
import type { Backend, KeyVerdict } from './backend.ts';

interface ConfiguredKey {
  readonly sha256: string;
  readonly owner: Owner;
  readonly keyId: string;
}

interface StandaloneOptions {
  readonly adminToken: Secret;
  readonly keys: readonly { readonly account: string; readonly sha256: string }[];
}

const KEY_ID_HEX_DIGITS = 8;

export class StandaloneBackend implements Backend {
  readonly #keys: readonly ConfiguredKey[];

  constructor(options: StandaloneOptions) {
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

  /** The limit of a session is all there is. */
  async admitTunnel(): Promise<Fault | null> {
    return null;
  }

  // Nobody is there to be told, and keys change only with a restart.
  admissionEnded(): void {}

  tunnelOpened(): void {}

  tunnelClosed(): void {}

  streamEnded(): void {}

  onRevoked(): () => void {
    return () => {};
  }

  async start(): Promise<void> {}

  ready(): void {}

  async stop(): Promise<void> {}
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
