// Ports in public URLs. A container or a load balancer can publish the ports of the edge under other numbers.
import type { ServerConfig } from './server-schema.ts';

type PortKeys = Pick<ServerConfig['server'], 'http_port' | 'https_port' | 'public_http_port' | 'public_https_port'>;

/** Returns the ports that visitors use: the published ports if the operator has configured them, else the ports of the edge. */
export const publicPorts = (server: PortKeys): { readonly http: number; readonly https: number } => ({
  http: server.public_http_port === 0 ? server.http_port : server.public_http_port,
  https: server.public_https_port === 0 ? server.https_port : server.public_https_port,
});
