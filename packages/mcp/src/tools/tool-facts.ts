// Static properties of every tool: its side effects, and the scope that a token needs.
import { TOOL_NAMES, type ToolName } from './tool-host.ts';

/** Permissions that a token can have. */
export const SCOPES = ['tunnels:read', 'requests:read', 'requests:replay', 'tunnels:close'] as const;
export type Scope = (typeof SCOPES)[number];

export interface ToolFacts {
  readonly name: ToolName;
  /** Scope required on the platform. Null if the platform does not offer the tool. */
  readonly scope: Scope | null;
  readonly readOnly: boolean;
  /** Whether the effects of the tool cannot be undone. */
  readonly destructive: boolean;
  /** Whether the tool affects visitors or a service of the user, with effects that Hatchway cannot predict. */
  readonly openWorld: boolean;
}

type Effect = 'reads' | 'publishes' | 'closes' | 'sends';

const ROWS: Readonly<Record<ToolName, readonly [scope: Scope | null, effect: Effect]>> = {
  close_tunnel: ['tunnels:close', 'closes'],
  get_request: ['requests:read', 'reads'],
  get_status: ['tunnels:read', 'reads'],
  get_tunnel: ['tunnels:read', 'reads'],
  get_usage: ['tunnels:read', 'reads'],
  list_keys: ['tunnels:read', 'reads'],
  list_pools: ['tunnels:read', 'reads'],
  list_requests: ['requests:read', 'reads'],
  list_tunnels: ['tunnels:read', 'reads'],
  open_tunnel: [null, 'publishes'],
  replay_request: ['requests:replay', 'sends'],
  run_doctor: [null, 'reads'],
  wait_for_request: ['requests:read', 'reads'],
};

export const toolFacts = (name: ToolName): ToolFacts => {
  const [scope, effect] = ROWS[name];
  return {
    name,
    scope,
    readOnly: effect === 'reads',
    destructive: effect === 'closes' || effect === 'sends',
    openWorld: effect === 'publishes' || effect === 'sends',
  };
};

/** Tool properties by name, sorted by name. */
export const TOOLS: ReadonlyMap<ToolName, ToolFacts> = new Map(TOOL_NAMES.map((name) => [name, toolFacts(name)]));
