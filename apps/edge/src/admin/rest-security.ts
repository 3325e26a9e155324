// Security of the REST port beyond loopback: the port uses TLS with the edge's certificate, and the certificate must cover the host in
// the URL for the platform.
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { restListenerOf, type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { loadTlsFiles, type TlsFiles } from '@tunnel/http-shell';
import { type Logger } from '@tunnel/runtime';

type RestConfig = Pick<ServerConfig, 'server' | 'tls' | 'acme'>;

/** Checks the `[tls]` files and their names. Used by `check-config` in addition to the value checks. Throws a fault. */
export const checkTls = async (config: RestConfig): Promise<void> =>
  checkApiHost(config, await loadTlsFiles(config.tls));

/** Returns the URL at which the platform reaches the REST API. `address` is null until the port is open. */
export const restUrlOf = (
  { server, tls, acme }: RestConfig,
  address: { readonly host: string; readonly port: number } | null,
): string => {
  if (server.api_url !== '' || address === null) return server.api_url;
  // With TLS, the URL contains the domain, because the listening address can be a wildcard and is rarely a name in the certificate. The
  // domain points to the edge.
  if (restListenerOf({ server, tls, acme }).tls) return `https://${server.domain}:${address.port}`;
  return `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
};

/**
 * Checks the REST settings before the port opens. Throws a fault if the certificate does not cover the REST host, because no caller could
 * trust the port.
 */
export const secureRest = (config: RestConfig, files: TlsFiles | null, logger: Logger): void => {
  checkApiHost(config, files);
  const { host, isWithdrawn } = restListenerOf(config);
  if (!isWithdrawn) return;
  const why =
    'REST API listens on loopback only, because API keys would be sent unencrypted; set up `[tls]` or `[acme]` to open the port to other machines';
  logger.info({ host, port: config.server.api_port, server_host: config.server.host }, why);
};

/**
 * Throws a fault if the certificate does not cover the REST host, because the platform would reject the certificate. An edge without a
 * platform needs no such check.
 */
const checkApiHost = (config: RestConfig, files: TlsFiles | null): void => {
  const { server, tls } = config;
  if (files === null || !restListenerOf(config).tls || (server.api_url === '' && server.platform_url === '')) return;
  const { hostname } = new URL(restUrlOf(config, { host: '', port: server.api_port }));
  const host = hostname.replace(/^\[|\]$/g, '');
  const certificate = new X509Certificate(files.cert);
  const isCovered = (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
  if (isCovered) return;
  const names = certificate.subjectAltName ?? certificate.subject;
  throw new Fault('CONFIG_API_URL_HOST', { host, file: tls.cert_path, names });
};
