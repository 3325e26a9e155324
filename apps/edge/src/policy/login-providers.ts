// Login providers of tunnels: a provider defined in the tunnel's policy, or one of the operator's providers by name.

import { ConfigProblem, readSecretText } from '@tunnel/config/layers';
import { type ServerConfig } from '@tunnel/config/server';
import type { LoginProvider } from '@tunnel/policy';
import { Secret } from '@tunnel/runtime';
import type { ProviderRef } from './provider-calls.ts';

export interface Provider {
  readonly ref: ProviderRef;
  readonly clientId: string;
  /** Client secret, or null for a public client, which has no secret. */
  readonly clientSecret: Secret | null;
  readonly scopes: readonly string[];
}

/** Default scopes, covering the claims that rules can use: the email with its verification status, and the name. */
const USUAL_SCOPES = ['openid', 'email', 'profile'];

export class LoginProviders {
  readonly #ofOperator: ReadonlyMap<string, Provider>;
  /** Providers of the policies in use, created once per policy. */
  readonly #ofTunnels = new WeakMap<LoginProvider, Provider>();

  constructor(ofOperator: ReadonlyMap<string, Provider>) {
    this.#ofOperator = ofOperator;
  }

  get names(): readonly string[] {
    return [...this.#ofOperator.keys()];
  }

  /**
   * Finds the provider of a login. `tenant` is charged for the calls; it is a parameter because equal policies of several tenants share
   * an object. Returns null if the operator no longer has a provider of this name.
   */
  find(login: LoginProvider, tenant: string): Provider | null {
    const found = 'provider' in login ? (this.#ofOperator.get(login.provider) ?? null) : this.#ofTunnel(login);
    return found === null ? null : { ...found, ref: { ...found.ref, tenant } };
  }

  #ofTunnel(login: Exclude<LoginProvider, { readonly provider: string }>): Provider {
    const known = this.#ofTunnels.get(login);
    if (known !== undefined) return known;
    const { issuer, client_id, client_secret, scopes } = login;
    const provider: Provider = {
      ref: { trust: 'tenant', issuer },
      clientId: client_id,
      clientSecret: client_secret === undefined ? null : new Secret(client_secret),
      // Providers return an ID token only for the scope `openid`.
      scopes: scopes.includes('openid') ? scopes : ['openid', ...scopes],
    };
    this.#ofTunnels.set(login, provider);
    return provider;
  }
}

/** Reads the operator's providers (`[[policy.login]]`) and the files of their secrets. Throws a ConfigProblem. */
export const readOperatorProviders = ({ login }: ServerConfig['policy']): ReadonlyMap<string, Provider> =>
  new Map(
    login.map(({ name, issuer, client_id, client_secret_file }) => [
      name,
      {
        ref: { trust: 'operator', issuer },
        clientId: client_id,
        clientSecret: client_secret_file === '' ? null : clientSecretIn(client_secret_file),
        scopes: USUAL_SCOPES,
      },
    ]),
  );

const clientSecretIn = (file: string): Secret => {
  const answer = readSecretText(file);
  if ('reason' in answer) throw new ConfigProblem('CONFIG_FILE_UNREADABLE', { file, reason: answer.reason });
  return new Secret(answer.secret.reveal().trim());
};
