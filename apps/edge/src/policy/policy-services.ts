// What `[policy]` of server.toml makes: the operator's rules, and the driver with the operator's providers and secrets.

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
  /** Where a login secret is kept that nobody has given; absent: for this run alone. */
  readonly dataDir?: string | undefined;
  /** Where the public reaches the edge itself: `https://edge.example.com:8443`. Asked when somebody logs in. */
  readonly edgeUrl: () => string;
}

export interface PolicyServices {
  readonly driver: PolicyDriver;
  /** Before the list of each tunnel; null: there is none. */
  readonly operatorPolicy: Policy | null;
}

/** Throws a ConfigProblem for a file that cannot be used. */
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

/** For whoever only wants to know whether an edge would start: reads each file and writes none. Throws a ConfigProblem; says what is seldom meant. */
export const checkPolicyConfig = ({ policy }: ServerConfig): ConfigWarning[] => {
  const rules = readOperatorPolicy(policy.file);
  readOperatorProviders(policy);
  if (policy.login_secret_file !== '') readLoginSecretFile(policy.login_secret_file);
  const warnings = rules === null ? [] : operatorWarnings(rules);
  return warnings.map((text) => ({ key: 'policy.file', text: `${policy.file}: ${text}` }));
};

/** "auto" means what it means for alerts: while everything says that the edge is for this machine only. */
const arePrivateProvidersAllowed = ({ server, platform, policy }: ServerConfig): boolean =>
  decidePrivateAlerts(policy.allow_private, {
    host: server.host,
    domain: server.domain,
    publicHost: new URL(platform.public_url).hostname,
    trustedProxies: [...server.trusted_proxies, ...platform.trusted_proxies],
  }).allowed;
