// Whether the edge of a stack answers for the platform: where the address that people open is one of this edge's own ports.
import type { ServerConfig } from './server-schema.ts';

type HostConfig = Pick<ServerConfig, 'server' | 'platform' | 'acme' | 'tls'>;

/** An edge that has a certificate, will have one, or makes them. */
export const hasHttpsPort = ({ acme, tls }: Pick<ServerConfig, 'acme' | 'tls'>): boolean =>
  acme.enabled || tls.local_ca || tls.cert_path !== '';

/** The host, in lower case; null: the platform is reached by its own port, or by a proxy of the operator's. */
export const platformHostAtEdge = ({ server, platform, acme, tls }: HostConfig): string | null => {
  const { protocol, hostname, port } = new URL(platform.public_url);
  // A platform with TLS of its own is no service that this edge could dial in clear.
  if (platform.tls) return null;
  const isHttps = protocol === 'https:';
  if (isHttps && !hasHttpsPort({ acme, tls })) return null;
  const usual = isHttps ? 443 : 80;
  const named = port === '' ? usual : Number(port);
  return named === (isHttps ? server.https_port : server.http_port) ? hostname.toLowerCase() : null;
};
