// Whether a client does what it was started for: one rule for `tunnel ready`, for READY=1 to a service manager, and so for service units.

/** Who asked for a tunnel. */
export type TunnelSource = 'file' | 'flags' | 'runtime' | 'mcp';

export interface ReadinessFacts {
  /** `connected` is the one that counts. */
  readonly state: 'connecting' | 'connected' | 'reconnecting' | 'closing' | 'closed';
  readonly tunnels: readonly {
    readonly name: string;
    readonly source: TunnelSource;
    readonly state: 'opening' | 'open' | 'refused' | 'closing';
  }[];
}

export type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string };

/** What the client was started with. What was added later comes and goes, and makes no start late. */
const STARTED_WITH: ReadonlySet<TunnelSource> = new Set(['file', 'flags']);

/** Names in a reason: more of them help nobody. */
const NAMES_MAX = 5;

export const readiness = ({ state, tunnels }: ReadinessFacts): Readiness => {
  if (state !== 'connected') return { ready: false, reason: `the client is ${state}` };
  // One that is closing was removed: it is wanted no more.
  const missing = tunnels.filter(
    ({ source, state: at }) => STARTED_WITH.has(source) && at !== 'open' && at !== 'closing',
  );
  if (missing.length === 0) return { ready: true };
  const named = missing.slice(0, NAMES_MAX).map((tunnel) => `${tunnel.name} is ${tunnel.state}`);
  const more = missing.length > NAMES_MAX ? [`${missing.length - NAMES_MAX} more are not open`] : [];
  return { ready: false, reason: [...named, ...more].join(', ') };
};
