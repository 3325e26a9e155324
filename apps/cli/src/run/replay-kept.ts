// Replay, from the inspector of a running client, of requests captured only by the edge, because they arrived while the local service was
// not running.
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

/** Connection settings of the client, and the path of its config file. */
type ReplaySource = Pick<TunnelRun, 'settings' | 'config'>;

/**
 * Replays with the user's sign-in if there is one, because the edge's REST API may be unreachable from this computer. Without a sign-in,
 * or if the signed-in account does not know the tunnel, replays with the API key.
 */
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

/** Error codes of a sign-in with another account, or of an ended session. */
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
