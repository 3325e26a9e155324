// REST beyond loopback: it speaks TLS there, with the certificate of the edge, and the platform is told a URL whose host the certificate has.
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { restListenerOf, type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { loadTlsFiles, type TlsFiles } from '@tunnel/http-shell';
import { type Logger } from '@tunnel/runtime';

type RestConfig = Pick<ServerConfig, 'server' | 'tls' | 'acme'>;

/** What `check-config` looks at beside the values: the files of `[tls]`, and whom they are for. Throws a fault. */
export const checkTls = async (config: RestConfig): Promise<void> =>
  checkApiHost(config, await loadTlsFiles(config.tls));

/** How the platform reaches the REST. `address` is null until it is open. */
export const restUrlOf = (
  { server, tls, acme }: RestConfig,
  address: { readonly host: string; readonly port: number } | null,
): string => {
  if (server.api_url !== '' || address === null) return server.api_url;
  // The address that is listened on may be everybody's, and is hardly a name of the certificate; the domain leads to us.
  if (restListenerOf({ server, tls, acme }).tls) return `https://${server.domain}:${address.port}`;
  return `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
};

/** Before it opens. Throws a fault when nobody could trust it. */
export const secureRest = (config: RestConfig, files: TlsFiles | null, logger: Logger): void => {
  checkApiHost(config, files);
  const { host, isWithdrawn } = restListenerOf(config);
  if (!isWithdrawn) return;
  const why =
    'REST API listens on loopback only, because API keys would be sent unencrypted; set up `[tls]` or `[acme]` to open the port to other machines';
  logger.info({ host, port: config.server.api_port, server_host: config.server.host }, why);
};

/** The platform would refuse a certificate for others, and rightly. An edge that no platform asks needs no such URL. */
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
