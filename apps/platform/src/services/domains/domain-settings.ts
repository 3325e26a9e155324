// What the configuration says that concerns own domains.

import { type ServerConfig } from '@tunnel/config/server';
import { isLoopbackHost } from '@tunnel/rules/net';

export interface DomainSettings {
  /** `[server] domain`. */
  readonly serverDomain: string;
  /** No account's own, nor anything below them. */
  readonly operatorsHosts: readonly string[];
  /** `[dns] resolvers`. */
  readonly resolvers: readonly string[];
  /** The server is reached from its own machine only, so that no record can point to it. With resolvers of its own it is a test of the whole. */
  readonly isLocal: boolean;
  /** Certificates are ordered. */
  readonly hasCertificates: boolean;
  /** The built-in responder answers the challenges of wildcards. */
  readonly hasWildcardCertificates: boolean;
  /** Of the platform's pages. */
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
