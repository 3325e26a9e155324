// State machine of a session and its tunnels: live, lost (held for the client's return), ended. A lost session keeps its endpoints (ports
// and names) for `windowMs`; a session ended on purpose keeps nothing. The endpoint of a group member belongs to the group and outlives the
// member: the member leaves immediately, and only its id is held.
import { type PublicEndpoint, sameEndpoint } from '@tunnel/rules/tunnels';

export type SessionTunnel =
  /** `awaited` is set after the session has changed its connection: the deadline for the client to claim the tunnel again. */
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
  /** The control connection was lost: its socket closed, or the client was silent for too long. */
  | { readonly kind: 'connection-lost'; readonly connectionId: number }
  /** The client reconnected with the session's secret and a valid API key. */
  | { readonly kind: 'resumed'; readonly connectionId: number }
  /** The public endpoint of a new or claimed tunnel is open. */
  | {
      readonly kind: 'tunnel-registered';
      readonly connectionId: number;
      readonly tunnelId: string;
      readonly endpoint: PublicEndpoint;
    }
  /** The tunnel ended: the client unregistered it, or the edge closed it. */
  | { readonly kind: 'tunnel-ended'; readonly tunnelId: string }
  /** The client stopped, the key was revoked, or the account was suspended. */
  | { readonly kind: 'session-ended' }
  | { readonly kind: 'time-passed' };

export type SessionEffect =
  /** Route traffic to the tunnel from now on. A tunnel already listed may have a new name. */
  | { readonly kind: 'list-tunnel'; readonly tunnelId: string; readonly endpoint: PublicEndpoint }
  /** Close the tunnel's endpoint to visitors; a member leaves its group. */
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
  /** Time for a lost session to return, and time for a resumed session to claim its tunnels. */
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
  // Late close of a replaced connection: the session belongs to the new connection.
  if (state.kind !== 'live' || state.connectionId !== connectionId) return [state, []];
  const until = now + rules.windowMs;
  const effects: SessionEffect[] = [];
  const tunnels = state.tunnels.map((tunnel): SessionTunnel => {
    const { tunnelId, endpoint } = tunnel;
    if (tunnel.kind === 'live') effects.push({ kind: 'close-endpoint', tunnelId, endpoint });
    effects.push(...holdEndpoint(tunnelId, endpoint, until));
    // A tunnel not claimed since an earlier loss counts as lost at that time.
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
  // The edge has not noticed the loss of the old socket. The new connection replaces it, and all tunnels stay open.
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

/** Reverts the opening of an endpoint after its session disconnected or changed its connection while the endpoint was being opened. */
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

/** True if passing time has changed the state of the session. The edge asks every second for each of its sessions. */
export const isDue = (state: SessionState, now: number): boolean => {
  if (state.kind === 'ended') return false;
  return (state.kind === 'lost' && now >= state.until) || state.tunnels.some((tunnel) => now >= deadlineOf(tunnel));
};

const timePassed = (state: Exclude<SessionState, { kind: 'ended' }>, now: number): SessionStep => {
  if (state.kind === 'lost' && now >= state.until) {
    return [
      { kind: 'ended' },
      [...state.tunnels.flatMap((tunnel) => dismiss(tunnel, now)), { kind: 'forget-session' }],
    ];
  }
  if (!isDue(state, now)) return [state, []];
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

/** Returns the effects of a tunnel's end. A lost or unclaimed tunnel ended when its client disconnected. */
const dismiss = (tunnel: SessionTunnel, now: number): SessionEffect[] => {
  const at = tunnel.kind === 'held' ? tunnel.lostAt : (tunnel.awaited?.since ?? now);
  return [...giveUpEndpoint(tunnel), { kind: 'tunnel-closed', tunnelId: tunnel.tunnelId, at }];
};
