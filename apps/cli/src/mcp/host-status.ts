// The status shown to a model: account and limits, edge, client, and allowed targets. A part that does not respond is reported as a
// problem in its place, because the other parts are still useful.

import type { EdgeStatus, PlatformClient } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { HostStatus } from '@tunnel/mcp/tools';
import { LoginFile } from '../api/login-file.ts';
import { type Io, VERSION } from '../io/io.ts';
import { faultOf } from '../io/problem-report.ts';
import type { RunningClient } from '../run/hooks/running-client.ts';
import { statusOf } from '../run/hooks/status-report.ts';
import { MCP_TUNNELS_MAX } from './limits.ts';

export interface StatusSources {
  readonly io: Io;
  /** The running client. Null until the client has connected. */
  readonly running: RunningClient | null;
  readonly allow: readonly string[];
  readonly edge: () => Promise<EdgeStatus>;
  readonly edgeUrl: () => string;
  readonly account: <T>(ask: (client: PlatformClient) => Promise<T>) => Promise<T>;
}

export const hostStatus = async (sources: StatusSources): Promise<HostStatus> => {
  const { running, allow } = sources;
  const [edge, known] = await Promise.all([edgeFields(sources), accountFields(sources)]);
  const { plan, tunnel_limit, active_tunnels, ...account } = known;
  const status = running === null ? null : statusOf(running, process.pid);
  return {
    account,
    plan,
    active_tunnels,
    limits: {
      tunnels: tunnel_limit,
      tunnels_of_this_server: MCP_TUNNELS_MAX,
      may_open: allow,
    },
    edge,
    versions: { client: VERSION, node: process.versions.node, edge: edge.version },
    client: {
      state: status?.state ?? 'idle',
      server: status?.server ?? null,
      region_id: status?.region_id ?? null,
      latency_ms: status?.latency_ms ?? null,
      tunnels: status?.tunnels ?? [],
      since: status?.since ?? null,
    },
  };
};

/** Returns the status of the edge. If the edge's REST API is out of reach, a connected client still knows the region. */
const edgeFields = async ({ edge, edgeUrl, running }: StatusSources) => {
  try {
    const url = edgeUrl();
    const { version, region_id, draining } = await edge();
    return { url, version, region_id, draining, problem: null };
  } catch (error) {
    const unknown = { url: null, version: null, draining: null };
    if (running?.state !== 'connected') return { ...unknown, region_id: null, problem: problemOf(error) };
    return { ...unknown, region_id: running.client?.session?.regionId ?? null, problem: null };
  }
};

/** Returns the account of the user's sign-in. Without a sign-in, returns the account reported by the edge for the API key. */
const accountFields = async ({ io, running, account }: StatusSources) => {
  const session = running?.client?.session ?? null;
  const known = {
    email: session?.account ?? null,
    plan: session?.plan ?? null,
    tunnel_limit: null,
    active_tunnels: null,
  };
  const platform = new LoginFile(io).read()?.platform.url ?? null;
  if (platform === null) return { ...known, platform, problem: null };
  try {
    const [me, usage] = await account((client) => Promise.all([client.me(), client.usage()]));
    const { plan, tunnel_limit, active_tunnels } = usage;
    return { email: me.email, plan, tunnel_limit, active_tunnels, platform, problem: null };
  } catch (error) {
    return { ...known, platform, problem: problemOf(error) };
  }
};

const problemOf = (error: unknown): string => {
  const fault = faultOf(error) ?? Fault.from(error);
  return `${fault.code}: ${fault.message}`;
};
