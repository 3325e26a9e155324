// Configuration settings relevant to custom domains.

import { type ServerConfig } from '@tunnel/config/server';
import { isLoopbackHost } from '@tunnel/rules/net';

export interface DomainSettings {
  /** Domain of the edge: the setting `[server] domain`. */
  readonly serverDomain: string;
  /** Hosts of the operator. Accounts cannot add these hosts or names below them as custom domains. */
  readonly operatorsHosts: readonly string[];
  /** DNS resolvers for domain checks: the setting `[dns] resolvers`. */
  readonly resolvers: readonly string[];
  /**
   * True if the server is reachable only from its own computer, so that no DNS record can point to it. False with configured resolvers,
   * which end-to-end tests use.
   */
  readonly isLocal: boolean;
  /** True if the platform orders certificates. */
  readonly hasCertificates: boolean;
  /** True if the built-in DNS responder answers the challenges for wildcard certificates. */
  readonly hasWildcardCertificates: boolean;
  /** Public URL of the platform's pages. */
  readonly publicUrl: string;
}

type DomainConfig = Pick<ServerConfig, 'server' | 'platform' | 'acme' | 'dns'>;

export const domainSettings = ({ server, platform, acme, dns }: DomainConfig): DomainSettings => ({
  serverDomain: server.domain,
  operatorsHosts: [...new Set([server.domain, new URL(platform.public_url).hostname])],
  resolvers: dns.resolvers,
  isLocal: isLoopbackHost(server.domain) && dns.resolvers.length === 0,
  hasCertificates: acme.enabled,
  hasWildcardCertificates: acme.enabled && acme.dns === 'builtin',
  publicUrl: platform.public_url,
});
