// Tunnels of kind tls: a public name on the edge's https port. Visitors shake hands with the local service itself; what passes are bytes, as of tcp.
import { CAPABILITY } from '@tunnel/protocol';
import { domainFields } from './own-domain.ts';
import { proxyFields, tcpKind } from './tcp.ts';
import type { TunnelKind } from './tunnel-kind.ts';

export const tlsKind: TunnelKind = {
  ...tcpKind,
  capability: CAPABILITY.TLS,
  keys: ['subdomain', 'domain', 'localSocket', 'proxyProtocol'],

  /** Its host is always asked for, so that nothing has to be remembered. */
  endpointFields: ({ subdomain, domain, proxyProtocol }) => ({
    ...(subdomain === undefined ? {} : { subdomain }),
    ...domainFields(domain),
    ...proxyFields(proxyProtocol),
  }),

  remember: () => ({}),
};
