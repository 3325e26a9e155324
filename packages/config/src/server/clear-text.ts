// Prevents unencrypted traffic with keys or credentials over a network, unless the operator declares the network trusted. Also decides on
// which address the edge's REST API listens, and whether the REST API uses TLS.
import { isLoopbackHost } from '@tunnel/rules/net';
import type { Finding } from '../layers/problem.ts';
import type { ServerConfig } from './server-schema.ts';

type LinkConfig = Pick<ServerConfig, 'server' | 'tls' | 'acme'>;
type CheckedConfig = LinkConfig & Pick<ServerConfig, 'telemetry'>;

const LOOPBACK_ADDRESS = '127.0.0.1';
const ALLOWED_BY = '`server.allow_insecure_link = true` allows http on a trusted network';

export interface RestListener {
  readonly host: string;
  readonly tls: boolean;
  /**
   * Whether the REST API listens on loopback although `server.host` is public. True if the operator has set no `api_host` and unencrypted
   * connections are unsafe on the public host.
   */
  readonly isWithdrawn: boolean;
}

export const restListenerOf = ({ server, tls, acme }: LinkConfig): RestListener => {
  const hasTls = tls.cert_path !== '' || acme.enabled;
  const host = server.api_host === '' ? server.host : server.api_host;
  if (isLoopbackHost(host)) return { host, tls: false, isWithdrawn: false };
  if (hasTls || server.api_host !== '') return { host, tls: hasTls, isWithdrawn: false };
  return { host: LOOPBACK_ADDRESS, tls: false, isWithdrawn: true };
};

export const clearTextFindings = (config: CheckedConfig): Finding[] => {
  const { server } = config;
  const rest = restListenerOf(config);
  if (rest.tls && server.api_url !== '' && !isHttps(server.api_url)) {
    const expected = `an https URL while the REST API uses TLS on \`${rest.host}\``;
    return [{ path: ['server', 'api_url'], expected, got: JSON.stringify(server.api_url) }];
  }
  if (server.allow_insecure_link) return [];
  const urls = [
    ...(['platform_url', 'api_url'] as const).flatMap((key) => urlFindings(['server', key], server[key])),
    ...collectorFindings(config),
  ];
  if (rest.tls || isLoopbackHost(rest.host)) return urls;
  const expected = `\`127.0.0.1\` or another loopback address without \`[tls]\` or \`[acme]\`, because API keys are sent (${ALLOWED_BY})`;
  return [...urls, { path: ['server', 'api_host'], expected, got: JSON.stringify(server.api_host) }];
};

const urlFindings = (path: readonly string[], url: string): Finding[] => {
  if (url === '' || isHttps(url) || isLoopbackHost(new URL(url).hostname)) return [];
  const expected = `an https URL (http only for this machine, because a credential is sent; ${ALLOWED_BY})`;
  return [{ path: [...path], expected, got: JSON.stringify(url) }];
};

/** Traces may pass a network unencrypted, but not the headers to the collector, which are usually a key. */
const collectorFindings = ({ telemetry }: CheckedConfig): Finding[] =>
  telemetry.otlp_headers.reveal() === '' ? [] : urlFindings(['telemetry', 'otlp_endpoint'], telemetry.otlp_endpoint);

const isHttps = (url: string): boolean => /^https:/i.test(url);
