// Creates the services of the `[policy]` section of server.toml: the operator's rules, and a driver with the operator's login providers
// and secrets.

import type { ConfigWarning, ServerConfig } from '@tunnel/config/server';
import { type Policy } from '@tunnel/policy';
import { decidePrivateAlerts } from '@tunnel/rules/net';
import type { Clock, Logger } from '@tunnel/runtime';
import { readOperatorProviders } from './login-providers.ts';
import { loadLoginSecrets, readLoginSecretFile } from './login-secrets.ts';
import { operatorWarnings, readOperatorPolicy } from './operator-policy.ts';
import { PolicyDriver } from './policy-driver.ts';

export interface PolicyServicesOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Folder for a generated login secret, used if none is configured. If absent, the secret lasts only until the process ends. */
  readonly dataDir?: string | undefined;
  /** Returns the public URL of the edge, such as `https://edge.example.com:8443`. Called when a visitor signs in. */
  readonly edgeUrl: () => string;
}

export interface PolicyServices {
  readonly driver: PolicyDriver;
  /** The operator's rules, which run before the rules of every tunnel; null if the operator has none. */
  readonly operatorPolicy: Policy | null;
}

/** Throws a ConfigProblem if a configured file cannot be used. */
export const createPolicyServices = (
  config: ServerConfig,
  { clock, logger, dataDir, edgeUrl }: PolicyServicesOptions,
): PolicyServices => {
  const operatorPolicy = readOperatorPolicy(config.policy.file);
  const driver = new PolicyDriver({
    clock,
    logger,
    edgeUrl,
    operatorPolicy,
    loginSecrets: loadLoginSecrets(config.policy.login_secret_file, dataDir),
    providers: readOperatorProviders(config.policy),
    allowPrivate: arePrivateProvidersAllowed(config),
  });
  return { driver, operatorPolicy };
};

/**
 * Checks whether an edge would start with the policy configuration. Reads every file and writes none. Throws a ConfigProblem on an error;
 * returns warnings about likely mistakes.
 */
export const checkPolicyConfig = ({ policy }: ServerConfig): ConfigWarning[] => {
  const rules = readOperatorPolicy(policy.file);
  readOperatorProviders(policy);
  if (policy.login_secret_file !== '') readLoginSecretFile(policy.login_secret_file);
  const warnings = rules === null ? [] : operatorWarnings(rules);
  return warnings.map((text) => ({ key: 'policy.file', text: `${policy.file}: ${text}` }));
};

/**
 * Returns true if tenants' providers can be at private addresses. "auto" has the same meaning as for alert webhooks: allowed only if the
 * configuration shows that the edge serves just this computer.
 */
const arePrivateProvidersAllowed = ({ server, platform, policy }: ServerConfig): boolean =>
  decidePrivateAlerts(policy.allow_private, {
    host: server.host,
    domain: server.domain,
    publicHost: new URL(platform.public_url).hostname,
    trustedProxies: [...server.trusted_proxies, ...platform.trusted_proxies],
  }).allowed;
