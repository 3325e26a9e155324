// The facts of every tool that are known before a server is made: what it changes, and which scope a token needs for it.
import { SCOPE_OF_TOOL, type Scope } from './scopes.ts';
import { TOOL_NAMES, type ToolName } from './tool-host.ts';

export interface ToolFacts {
  readonly name: ToolName;
  /** null: none of the platform's. */
  readonly scope: Scope | null;
  readonly readOnly: boolean;
  readonly destructive: boolean;
  /** It reaches visitors or a service of the person: its effects are not ours to foresee. */
  readonly openWorld: boolean;
}

const WRITES: ReadonlySet<ToolName> = new Set(['open_tunnel', 'close_tunnel', 'replay_request']);
const DESTROYS: ReadonlySet<ToolName> = new Set(['close_tunnel', 'replay_request']);
const OPEN_WORLD: ReadonlySet<ToolName> = new Set(['open_tunnel', 'replay_request']);

/** By name, sorted. */
export const TOOLS: ReadonlyMap<ToolName, ToolFacts> = new Map(
  TOOL_NAMES.map((name) => [
    name,
    {
      name,
      scope: SCOPE_OF_TOOL[name] ?? null,
      readOnly: !WRITES.has(name),
      destructive: DESTROYS.has(name),
      openWorld: OPEN_WORLD.has(name),
    },
  ]),
);
