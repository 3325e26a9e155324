// What a token may be allowed to do, and which of the tools need it.
import type { ToolName } from './tool-host.ts';

export const SCOPES = ['tunnels:read', 'requests:read', 'requests:replay', 'tunnels:close'] as const;
export type Scope = (typeof SCOPES)[number];

/** Tools without a row are none of the platform's. */
export const SCOPE_OF_TOOL: Readonly<Partial<Record<ToolName, Scope>>> = {
  list_tunnels: 'tunnels:read',
  get_tunnel: 'tunnels:read',
  list_pools: 'tunnels:read',
  get_usage: 'tunnels:read',
  list_keys: 'tunnels:read',
  get_status: 'tunnels:read',
  list_requests: 'requests:read',
  get_request: 'requests:read',
  wait_for_request: 'requests:read',
  replay_request: 'requests:replay',
  close_tunnel: 'tunnels:close',
};
