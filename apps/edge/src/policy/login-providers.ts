// Who logs people in at a tunnel: the provider that its policy brings, or one of the operator's by its name.

import { ConfigProblem, readSecretText } from '@tunnel/config/layers';
import { type ServerConfig } from '@tunnel/config/server';
import type { LoginProvider } from '@tunnel/policy';
import { Secret } from '@tunnel/runtime';
import type { ProviderRef } from './provider-calls.ts';

export interface Provider {
  readonly ref: ProviderRef;
  readonly clientId: string;
  /** null: a public client, which has none. */
  readonly clientSecret: Secret | null;
  readonly scopes: readonly string[];
}

/** What rules may ask for: an e-mail with its proof, and a name. */
const USUAL_SCOPES = ['openid', 'email', 'profile'];

export class LoginProviders {
  readonly #ofOperator: ReadonlyMap<string, Provider>;
  /** Of policies that live; read once each. */
  readonly #ofTunnels = new WeakMap<LoginProvider, Provider>();

  constructor(ofOperator: ReadonlyMap<string, Provider>) {
    this.#ofOperator = ofOperator;
  }

  get names(): readonly string[] {
    return [...this.#ofOperator.keys()];
  }

  /** `tenant`: who asks it; equal policies of several are one object. null: the operator has none of that name any more. */
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
      // Without it there is no ID token.
      scopes: scopes.includes('openid') ? scopes : ['openid', ...scopes],
    };
    this.#ofTunnels.set(login, provider);
    return provider;
  }
}

/** Of `[[policy.login]]`, with the secrets that their files hold. Throws a ConfigProblem. */
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
