// Decides whether the edge of a stack also serves the platform, which is the case if the platform's public URL has a public port of the edge.
import { publicPorts } from './public-ports.ts';
import type { ServerConfig } from './server-schema.ts';

type HostConfig = Pick<ServerConfig, 'server' | 'platform' | 'acme' | 'tls'>;

/** Whether the edge has an HTTPS port: it has a certificate, orders certificates, or makes them with a local CA. */
export const hasHttpsPort = ({ acme, tls }: Pick<ServerConfig, 'acme' | 'tls'>): boolean =>
  acme.enabled || tls.local_ca || tls.cert_path !== '';

/**
 * Returns the host name of the platform in lower case if the edge serves the platform. Returns null if visitors use the platform's own
 * port or a proxy of the operator.
 */
export const platformHostAtEdge = ({ server, platform, acme, tls }: HostConfig): string | null => {
  const { protocol, hostname, port } = new URL(platform.public_url);
  // The edge connects to the platform without TLS, so the edge cannot serve a platform that uses TLS.
  if (platform.tls) return null;
  const isHttps = protocol === 'https:';
  if (isHttps && !hasHttpsPort({ acme, tls })) return null;
  const usual = isHttps ? 443 : 80;
  const named = port === '' ? usual : Number(port);
  return named === publicPorts(server)[isHttps ? 'https' : 'http'] ? hostname.toLowerCase() : null;
};
