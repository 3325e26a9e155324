// An edge in the test process with larger limits than usual, for rows that need more frames than a client may normally send.

import { loadServerConfig } from '@tunnel/config/server';
import { createEdge } from '@tunnel/edge';
import { createLogger, Secret } from '@tunnel/runtime';
import type { Harness } from '../../system/harness.fixture.ts';
import type { GroupEdge } from './group-edge.fixture.ts';

const ANY = { perSecond: 1e9, burst: 1e9 };
const KEY = 'admin';

export interface RoomyEdge extends Pick<GroupEdge, 'server' | 'token'> {
  readonly apiUrl: string;
  /** Requests a path of the REST API and returns the JSON body. */
  json<T>(path: string): Promise<T>;
}

export const startRoomyEdge = async (harness: Harness): Promise<RoomyEdge> => {
  const server = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0 };
  const config = loadServerConfig({ env: {}, overrides: { server, load_balancing: { enabled: true } } });
  const edge = createEdge(config, {
    clock: harness.clock,
    logger: createLogger({ level: 'silent', format: 'json' }),
    adminToken: new Secret(KEY),
    controlRateLimits: { connection: ANY, account: ANY, perTurn: 64, pauseMinMs: 50 },
  });
  await edge.start();
  harness.use({ close: () => edge.stop({ drainMs: 0 }) });
  const { control, api } = edge.addresses;
  const apiUrl = `http://127.0.0.1:${api.port}`;
  return {
    server: `127.0.0.1:${control.port}`,
    token: () => KEY,
    apiUrl,
    json: async <T>(path: string) => {
      const answer = await fetch(`${apiUrl}${path}`, { headers: { authorization: `Bearer ${KEY}` } });
      return (await answer.json()) as T;
    },
  };
};
