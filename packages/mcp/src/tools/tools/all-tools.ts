// All tools, sorted by name, which is the order of every listing.
import type { Tool } from '../tool.ts';
import { closeTunnel } from './close-tunnel.ts';
import { getRequest } from './get-request.ts';
import { getStatus } from './get-status.ts';
import { getTunnel } from './get-tunnel.ts';
import { getUsage } from './get-usage.ts';
import { listKeys } from './list-keys.ts';
import { listPools } from './list-pools.ts';
import { listRequests } from './list-requests.ts';
import { listTunnels } from './list-tunnels.ts';
import { openTunnel } from './open-tunnel.ts';
import { replayRequest } from './replay-request.ts';
import { runDoctor } from './run-doctor.ts';
import { waitForRequest } from './wait-for-request.ts';

const ALL: readonly Tool[] = [
  closeTunnel,
  getRequest,
  getStatus,
  getTunnel,
  getUsage,
  listKeys,
  listPools,
  listRequests,
  listTunnels,
  openTunnel,
  replayRequest,
  runDoctor,
  waitForRequest,
];

export const TOOL_BY_NAME: ReadonlyMap<string, Tool> = new Map(ALL.map((tool) => [tool.name, tool]));
