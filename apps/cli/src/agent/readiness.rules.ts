// The rule for when a client is ready. `tunnel ready`, the READY=1 message to a service manager, and therefore service units share the
// rule.

/** Origin of a tunnel: config file, command line, a command sent to the running client, or MCP. */
export type TunnelSource = 'file' | 'flags' | 'runtime' | 'mcp';

export interface ReadinessFacts {
  /** State of the client. Only a `connected` client can be ready. */
  readonly state: 'connecting' | 'connected' | 'reconnecting' | 'closing' | 'closed';
  readonly tunnels: readonly {
    readonly name: string;
    readonly source: TunnelSource;
    readonly state: 'opening' | 'open' | 'refused' | 'closing';
  }[];
}

export type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string };

/** Origins of tunnels requested at the start of the client. Tunnels added later can come and go without affecting readiness. */
const STARTED_WITH: ReadonlySet<TunnelSource> = new Set(['file', 'flags']);

/** Maximum tunnel names in the reason for a client that is not ready. More names would not help. */
const NAMES_MAX = 5;

export const readiness = ({ state, tunnels }: ReadinessFacts): Readiness => {
  if (state !== 'connected') return { ready: false, reason: `the client is ${state}` };
  // A closing tunnel was removed, so the client can be ready without the tunnel.
  const missing = tunnels.filter(
    ({ source, state: at }) => STARTED_WITH.has(source) && at !== 'open' && at !== 'closing',
  );
  if (missing.length === 0) return { ready: true };
  const named = missing.slice(0, NAMES_MAX).map((tunnel) => `${tunnel.name} is ${tunnel.state}`);
  const more = missing.length > NAMES_MAX ? [`${missing.length - NAMES_MAX} more are not open`] : [];
  return { ready: false, reason: [...named, ...more].join(', ') };
};
