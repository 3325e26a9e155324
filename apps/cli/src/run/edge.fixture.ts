// A real edge for tests of the commands, in the same process, on free ports.

import { loadServerConfig } from '@tunnel/config/server';
import { createEdge, type Edge, type EdgeDeps } from '@tunnel/edge';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';

type Overrides = NonNullable<Parameters<typeof loadServerConfig>[0]['overrides']>;

/** Starts an edge with the admin token `admin`. */
export const startEdge = async (overrides: Overrides = {}, deps: Partial<EdgeDeps> = {}): Promise<Edge> => {
  const server = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0 };
  const edge = createEdge(loadServerConfig({ env: {}, overrides: { server, ...overrides } }), {
    clock: systemClock,
    logger: createLogger({ level: 'silent', format: 'json' }),
    adminToken: new Secret('admin'),
    ...deps,
  });
  await edge.start();
  return edge;
};
