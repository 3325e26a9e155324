// The facts of every tool that are known before a server is made: what it changes, and which scope a token needs for it.
import { TOOL_NAMES, type ToolName } from './tool-host.ts';

/** What a token may be allowed to do. */
export const SCOPES = ['tunnels:read', 'requests:read', 'requests:replay', 'tunnels:close'] as const;
export type Scope = (typeof SCOPES)[number];

export interface ToolFacts {
  readonly name: ToolName;
  /** null: none of the platform's. */
  readonly scope: Scope | null;
  readonly readOnly: boolean;
  /** What it does cannot be taken back. */
  readonly destructive: boolean;
  /** It reaches visitors or a service of the person: its effects are not ours to foresee. */
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

/** By name, sorted. */
export const TOOLS: ReadonlyMap<ToolName, ToolFacts> = new Map(TOOL_NAMES.map((name) => [name, toolFacts(name)]));
