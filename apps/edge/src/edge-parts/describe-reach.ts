// How people and their clients come to this edge, as the platform shows it to them.
import type { Heartbeat } from '@tunnel/contract';
import type { ServerConfig } from '@tunnel/runtime';

export interface OpenPorts {
  readonly control: { readonly host: string; readonly port: number };
  readonly http: { readonly port: number };
  readonly https: { readonly port: number } | null;
}

const LOOPBACK = /^(127\.|::1$|localhost$)/;
const USUAL_PORT = { http: 80, https: 443 } as const;

export const describeReach = (
  { server }: { readonly server: Pick<ServerConfig['server'], 'domain'> },
  { control, http, https }: OpenPorts,
): NonNullable<Heartbeat['reach']> => {
  const { domain } = server;
  const { scheme, port } =
    https === null ? ({ scheme: 'http', port: http.port } as const) : ({ scheme: 'https', port: https.port } as const);
  return {
    control: `${controlHost(control.host, domain)}:${control.port}`,
    control_tls: https !== null,
    http_url: `${scheme}://${domain}${port === USUAL_PORT[scheme] ? '' : `:${port}`}`,
  };
};

/** Elsewhere the address that is listened on may be everybody's, or a private one; the domain leads to us in any case. */
const controlHost = (host: string, domain: string): string => {
  if (!LOOPBACK.test(host)) return domain;
  return host.includes(':') ? `[${host}]` : host;
};
