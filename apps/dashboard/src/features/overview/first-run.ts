// Progress of a new user, derived from API data, and whether an account still counts as new. Pure functions.
import type { ApiToken, CapturedRequest, TunnelLogEntry } from '@tunnel/contract';

export interface FirstRunData {
  readonly keys: readonly ApiToken[];
  /** The account's newest tunnel. */
  readonly tunnel: TunnelLogEntry | undefined;
  /** Captured requests of the newest tunnel, newest first. */
  readonly requests: readonly CapturedRequest[];
}

export interface Step {
  readonly isDone: boolean;
  /** Current state of the step, or the event the step is waiting for. */
  readonly note: string;
  /** True if a problem blocks the step. */
  readonly isTrouble?: boolean;
}

export interface FirstRun {
  readonly key: Step;
  readonly service: Step;
  readonly tunnel: Step;
  /**
   * Result of the first visit. `none`: no visit yet. `lost`: a visitor came, but the local service did not respond. `answered`: the local
   * service responded.
   */
  readonly visit: 'none' | 'lost' | 'answered';
}

/** Number of tunnels without any request after which an account no longer counts as new. */
const TRIES_MAX = 5;

/** Returns whether an account is new: few tunnels, and no request so far. `newest` must contain at least the newest 5 tunnels. */
export const isNewAccount = (newest: readonly Pick<TunnelLogEntry, 'request_count'>[]): boolean =>
  newest.length < TRIES_MAX && newest.every(({ request_count }) => request_count === 0);

/** Returns the progress of a new user. `port` is the port of the user's local service. */
export const readFirstRun = (data: FirstRunData, port: number): FirstRun => {
  const service = serviceStep(data, port);
  const visit = data.requests.length > 0 && !service.isDone ? 'lost' : 'none';
  return { key: keyStep(data), service, tunnel: tunnelStep(data), visit: service.isDone ? 'answered' : visit };
};

const keyStep = ({ keys, tunnel }: FirstRunData): Step => {
  const key = keys.find(({ last_used_at }) => last_used_at !== null) ?? keys[0];
  if (key === undefined) return { isDone: false, note: 'Waiting for you to sign in' };
  // The platform updates the key's time of use later than the list of tunnels.
  const isUsed = key.last_used_at !== null || tunnel !== undefined;
  return { isDone: true, note: `API key “${key.label}” created. ${isUsed ? 'Already used.' : 'Not used yet.'}` };
};

/**
 * Returns the step of the local service. Only the client can reach the service, so the step is done once the service has responded to a
 * request.
 */
const serviceStep = ({ requests, tunnel }: FirstRunData, port: number): Step => {
  // An edge that does not capture requests still counts requests.
  const isCountedOnly = requests.length === 0 && (tunnel?.request_count ?? 0) > 0;
  if (isCountedOnly || requests.some(isAnswered)) return { isDone: true, note: 'Your server responded.' };
  const failed = requests.find(({ error }) => error !== null);
  if (failed !== undefined) {
    const note = `No response on port ${port} (${failed.error}). Start your server, then open the URL again.`;
    return { isDone: false, note, isTrouble: true };
  }
  return { isDone: false, note: 'Waiting for the first request' };
};

const isAnswered = ({ status, error }: CapturedRequest): boolean => status !== null && error === null;

/**
 * Returns the step of the first tunnel. The key's use is no evidence of a tunnel, because signing in on the command line also uses the
 * key.
 */
const tunnelStep = ({ tunnel }: FirstRunData): Step => {
  if (tunnel === undefined) return { isDone: false, note: 'Waiting for your first tunnel' };
  if (tunnel.unregistered_at !== null) {
    return { isDone: true, note: 'Your tunnel has stopped. Run the command again to continue.' };
  }
  return { isDone: true, note: 'Your tunnel is live.' };
};
