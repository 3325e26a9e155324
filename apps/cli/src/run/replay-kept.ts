// Replays, from the inspector of a running client, requests that only the edge has: those that came while the local service was not running.
import type { InspectorOptions } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { apiAddress } from '../api/edge-api.ts';
import { EdgeTunnels } from '../api/edge-tunnels.ts';
import { LoginFile } from '../api/login-file.ts';
import { PlatformLogin } from '../api/platform-login.ts';
import { loadConfig } from '../config/file.ts';
import type { Io } from '../io/io.ts';
import { CLI_LIMITS } from '../limits.ts';
import type { TunnelRun } from './hooks/running-client.ts';

type ReplayAtEdge = NonNullable<InspectorOptions['replayAtEdge']>;

/** Where the client is connected, and the config file it was started with. */
type ReplaySource = Pick<TunnelRun, 'settings' | 'config'>;

/** By the login where there is one, since the REST of an edge may not be reachable from here; else, or where the login does not know the tunnel, by the API key. */
export const replayKept =
  (plan: ReplaySource, io: Io): ReplayAtEdge =>
  async (request) => {
    if (!new LoginFile(io).exists()) return byKey(plan, io)(request);
    try {
      return await byLogin(io)(request);
    } catch (error) {
      if (!ELSEWHERE.has(Fault.from(error).code)) throw error;
      return byKey(plan, io)(request);
    }
  };

/** The login is another account's, or has ended. */
const ELSEWHERE: ReadonlySet<string> = new Set(['TUNNEL_UNKNOWN', 'CAPTURE_UNKNOWN', 'CLIENT_LOGIN_NEEDED']);

const byLogin =
  (io: Io): ReplayAtEdge =>
  async ({ tunnelId, requestId }) => {
    const login = PlatformLogin.open(io, {});
    const replayed = await login.call(
      (client) => client.replay(tunnelId, requestId),
      CLI_LIMITS.REPLAY_ANSWER_TIMEOUT_MS,
    );
    return replayed.id;
  };

const byKey =
  ({ settings, config }: ReplaySource, io: Io): ReplayAtEdge =>
  async ({ tunnelId, requestId }) => {
    const { server, tls, token, caFile, insecure, proxy } = settings;
    const api = config === null ? undefined : loadConfig(config, io)?.values.api_url;
    const address = apiAddress({ api, server, tls });
    const edge = new EdgeTunnels({ address, token, caFile, insecure, proxyFor: () => proxy });
    return (await edge.replay(tunnelId, requestId)).id;
  };
