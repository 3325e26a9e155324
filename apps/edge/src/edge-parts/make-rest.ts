// The REST of an edge on its port: what its handlers work on.
import { callerAddressOf } from '@tunnel/core';
import { randomId, type Secret, type ServerConfig } from '@tunnel/runtime';
import { RestServer } from '../admin/rest-server.ts';
import type { Backend } from '../backend/backend.ts';
import { CaptureService } from '../capture/capture-service.ts';
import { Replays } from '../capture/replay.ts';
import type { AuthFailures } from '../control/auth-failures.ts';
import type { GroupWatch } from '../group-watch.ts';
import type { ControlSide } from './control-side.ts';
import { DEVELOPMENT, type EdgeDeps } from './edge-deps.ts';
import type { PublicSide } from './public-side.ts';

export interface RestParts {
  readonly backend: Backend;
  readonly platformSecret: Secret;
  readonly control: ControlSide;
  readonly publicSide: PublicSide;
  readonly failures: AuthFailures;
  readonly watch: GroupWatch;
  readonly uptimeMs: () => number;
}

export const makeRest = (config: ServerConfig, deps: EdgeDeps, parts: RestParts): RestServer => {
  const { server, region } = config;
  const { clock, logger, version = DEVELOPMENT } = deps;
  const { control, publicSide, failures, watch, uptimeMs } = parts;
  const { tunnels, captures, http } = publicSide;
  const host = server.api_host === '' ? server.host : server.api_host;
  return new RestServer(
    { host, port: server.api_port },
    {
      backend: parts.backend,
      platformSecret: parts.platformSecret,
      tunnels,
      groups: tunnels.groups,
      feed: watch.feed,
      closeTunnel: (tunnelId, fault) => control.closeTunnel(tunnelId, fault),
      captures: new CaptureService({
        store: captures,
        tunnels,
        replays: new Replays({ store: captures, clock, http }),
      }),
      status: () => ({
        sessions: control.figures.sessions,
        tunnels: tunnels.size,
        uptime_secs: uptimeMs() / 1000,
        draining: control.isDraining,
      }),
      region,
      version,
      authFailures: failures,
      callerAddress: callerAddressOf(server.trusted_proxies),
      newRequestId: () => randomId('req'),
      logger,
    },
  );
};
