// The life of one session and what becomes of its tunnels: live, lost (held for its return), ended.
// A lost session keeps its endpoints (ports and names) for `windowMs`; one that ended on purpose keeps nothing.
// A member's endpoint is its group's, which lives without it: the member leaves at once, and only its id waits for the return.
import { type PublicEndpoint, sameEndpoint } from '@tunnel/rules/tunnels';

export type SessionTunnel =
  /** `awaited`: the session changed its connection under the tunnel; the client has until then to claim it again. */
  | {
      readonly kind: 'live';
      readonly tunnelId: string;
      readonly endpoint: PublicEndpoint;
      readonly awaited: { readonly since: number; readonly until: number } | null;
    }
  | {
      readonly kind: 'held';
      readonly tunnelId: string;
      readonly endpoint: PublicEndpoint;
      readonly lostAt: number;
      readonly until: number;
    };

export type SessionState =
  | { readonly kind: 'live'; readonly connectionId: number; readonly tunnels: readonly SessionTunnel[] }
  | { readonly kind: 'lost'; readonly until: number; readonly tunnels: readonly SessionTunnel[] }
  | { readonly kind: 'ended' };

export type SessionEvent =
  /** The socket closed, or nothing was heard for too long. */
  | { readonly kind: 'connection-lost'; readonly connectionId: number }
  /** The client came back with the secret and a valid key. */
  | { readonly kind: 'resumed'; readonly connectionId: number }
  /** The endpoint of a tunnel is open: a new one, or one that the client claims again. */
  | {
      readonly kind: 'tunnel-registered';
      readonly connectionId: number;
      readonly tunnelId: string;
      readonly endpoint: PublicEndpoint;
    }
  /** On purpose: the client unregistered it, or the edge closed it. */
  | { readonly kind: 'tunnel-ended'; readonly tunnelId: string }
  /** On purpose: the client stops, the key was revoked, the account is closed to traffic. */
  | { readonly kind: 'session-ended' }
  | { readonly kind: 'time-passed' };

export type SessionEffect =
  /** Dispatch to it from now on; one that is listed already may have changed its name. */
  | { readonly kind: 'list-tunnel'; readonly tunnelId: string; readonly endpoint: PublicEndpoint }
  /** No visitor comes that way any more; a member leaves its group. */
  | { readonly kind: 'close-endpoint'; readonly tunnelId: string; readonly endpoint: PublicEndpoint }
  | {
      readonly kind: 'hold-endpoint';
      readonly tunnelId: string;
      readonly endpoint: PublicEndpoint;
      readonly until: number;
    }
  | { readonly kind: 'release-endpoint'; readonly tunnelId: string; readonly endpoint: PublicEndpoint }
  | { readonly kind: 'tunnel-opened'; readonly tunnelId: string; readonly at: number }
  | { readonly kind: 'tunnel-closed'; readonly tunnelId: string; readonly at: number }
  | { readonly kind: 'replace-connection'; readonly connectionId: number }
  | { readonly kind: 'forget-session' };

type SessionStep = readonly [SessionState, readonly SessionEffect[]];

interface SessionRules {
  /** How long a lost session may come back, and how long a returned one may take to claim its tunnels. */
  readonly windowMs: number;
}

export const startSession = (connectionId: number): SessionState => ({ kind: 'live', connectionId, tunnels: [] });

export const transitionSession = (
  state: SessionState,
  event: SessionEvent,
  now: number,
  rules: SessionRules,
): SessionStep => {
  if (event.kind === 'tunnel-registered') return registered(state, event, now);
  if (state.kind === 'ended') return [state, []];
  switch (event.kind) {
    case 'connection-lost':
      return lost(state, event.connectionId, now, rules);
    case 'resumed':
      return resumed(state, event.connectionId, now, rules);
    case 'tunnel-ended':
      return tunnelEnded(state, event.tunnelId, now);
    case 'session-ended':
      return [
        { kind: 'ended' },
        [...state.tunnels.flatMap((tunnel) => dismiss(tunnel, now)), { kind: 'forget-session' }],
      ];
    case 'time-passed':
      return timePassed(state, now);
  }
};

export const findTunnel = (state: SessionState, tunnelId: string): SessionTunnel | undefined =>
  state.kind === 'ended' ? undefined : state.tunnels.find((tunnel) => tunnel.tunnelId === tunnelId);

const lost = (state: SessionState, connectionId: number, now: number, rules: SessionRules): SessionStep => {
  // The late close of a connection that was replaced: its successor holds the session.
  if (state.kind !== 'live' || state.connectionId !== connectionId) return [state, []];
  const until = now + rules.windowMs;
  const effects: SessionEffect[] = [];
  const tunnels = state.tunnels.map((tunnel): SessionTunnel => {
    const { tunnelId, endpoint } = tunnel;
    if (tunnel.kind === 'live') effects.push({ kind: 'close-endpoint', tunnelId, endpoint });
    effects.push(...holdEndpoint(tunnelId, endpoint, until));
    // One that was never claimed since an earlier loss was lost then.
    const lostAt = tunnel.kind === 'held' ? tunnel.lostAt : (tunnel.awaited?.since ?? now);
    return { kind: 'held', tunnelId, endpoint, lostAt, until };
  });
  return [{ kind: 'lost', until, tunnels }, effects];
};

const resumed = (
  state: Exclude<SessionState, { kind: 'ended' }>,
  connectionId: number,
  now: number,
  rules: SessionRules,
): SessionStep => {
  const until = now + rules.windowMs;
  const effects: SessionEffect[] = [];
  // The edge still believes in the old socket: the new one takes its place, and no tunnel leaves.
  if (state.kind === 'live') effects.push({ kind: 'replace-connection', connectionId: state.connectionId });
  const tunnels = state.tunnels.map((tunnel): SessionTunnel => {
    if (tunnel.kind === 'live') return { ...tunnel, awaited: { since: tunnel.awaited?.since ?? now, until } };
    effects.push(...holdEndpoint(tunnel.tunnelId, tunnel.endpoint, until));
    return { ...tunnel, until };
  });
  return [{ kind: 'live', connectionId, tunnels }, effects];
};

const registered = (
  state: SessionState,
  event: Extract<SessionEvent, { kind: 'tunnel-registered' }>,
  now: number,
): SessionStep => {
  const { tunnelId, endpoint } = event;
  const known = findTunnel(state, tunnelId);
  if (state.kind !== 'live' || state.connectionId !== event.connectionId)
    return [state, undo(known, tunnelId, endpoint)];
  const effects: SessionEffect[] = [];
  if (known !== undefined && !sameEndpoint(known.endpoint, endpoint)) effects.push(...giveUpEndpoint(known));
  effects.push({ kind: 'list-tunnel', tunnelId, endpoint });
  if (known === undefined) effects.push({ kind: 'tunnel-opened', tunnelId, at: now });
  const next: SessionTunnel = { kind: 'live', tunnelId, endpoint, awaited: null };
  const others = state.tunnels.filter((tunnel) => tunnel !== known);
  return [{ ...state, tunnels: [...others, next] }, effects];
};

/** The session went away or changed its connection while the endpoint was being opened. */
const undo = (known: SessionTunnel | undefined, tunnelId: string, endpoint: PublicEndpoint): SessionEffect[] => {
  if (known !== undefined && sameEndpoint(known.endpoint, endpoint)) {
    if (known.kind === 'live') return [];
    return [{ kind: 'close-endpoint', tunnelId, endpoint }, ...holdEndpoint(tunnelId, endpoint, known.until)];
  }
  return [{ kind: 'close-endpoint', tunnelId, endpoint }, ...releaseEndpoint(tunnelId, endpoint)];
};

const tunnelEnded = (state: Exclude<SessionState, { kind: 'ended' }>, tunnelId: string, now: number): SessionStep => {
  const tunnel = findTunnel(state, tunnelId);
  if (tunnel === undefined) return [state, []];
  return [{ ...state, tunnels: state.tunnels.filter((other) => other !== tunnel) }, dismiss(tunnel, now)];
};

const timePassed = (state: Exclude<SessionState, { kind: 'ended' }>, now: number): SessionStep => {
  if (state.kind === 'lost' && now >= state.until) {
    return [
      { kind: 'ended' },
      [...state.tunnels.flatMap((tunnel) => dismiss(tunnel, now)), { kind: 'forget-session' }],
    ];
  }
  if (!state.tunnels.some((tunnel) => now >= deadlineOf(tunnel))) return [state, []];
  const late = state.tunnels.filter((tunnel) => now >= deadlineOf(tunnel));
  return [
    { ...state, tunnels: state.tunnels.filter((tunnel) => !late.includes(tunnel)) },
    late.flatMap((tunnel) => dismiss(tunnel, now)),
  ];
};

const deadlineOf = (tunnel: SessionTunnel): number =>
  tunnel.kind === 'held' ? tunnel.until : (tunnel.awaited?.until ?? Number.POSITIVE_INFINITY);

const giveUpEndpoint = ({ kind, tunnelId, endpoint }: SessionTunnel): SessionEffect[] => [
  ...(kind === 'live' ? [{ kind: 'close-endpoint', tunnelId, endpoint } as const] : []),
  ...releaseEndpoint(tunnelId, endpoint),
];

const holdEndpoint = (tunnelId: string, endpoint: PublicEndpoint, until: number): SessionEffect[] =>
  endpoint.kind === 'member' ? [] : [{ kind: 'hold-endpoint', tunnelId, endpoint, until }];

const releaseEndpoint = (tunnelId: string, endpoint: PublicEndpoint): SessionEffect[] =>
  endpoint.kind === 'member' ? [] : [{ kind: 'release-endpoint', tunnelId, endpoint }];

/** The end of a tunnel. One that was lost, or that nobody claimed, ended when its client went away. */
const dismiss = (tunnel: SessionTunnel, now: number): SessionEffect[] => {
  const at = tunnel.kind === 'held' ? tunnel.lostAt : (tunnel.awaited?.since ?? now);
  return [...giveUpEndpoint(tunnel), { kind: 'tunnel-closed', tunnelId: tunnel.tunnelId, at }];
};
