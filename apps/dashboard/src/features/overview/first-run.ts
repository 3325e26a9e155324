// How far somebody new has come, from what the API knows, and whether an account still is new. Pure.
import type { ApiToken, CapturedRequest, TunnelLogEntry } from '@tunnel/contract';

export interface FirstRunData {
  readonly keys: readonly ApiToken[];
  /** The newest. */
  readonly tunnel: TunnelLogEntry | undefined;
  /** Of that tunnel, newest first. */
  readonly requests: readonly CapturedRequest[];
}

export interface Step {
  readonly isDone: boolean;
  /** What is known, or waited for. */
  readonly note: string;
  /** Something is in the way. */
  readonly isTrouble?: boolean;
}

export interface FirstRun {
  readonly key: Step;
  readonly service: Step;
  readonly tunnel: Step;
  /** `lost`: a visitor came, and no service answered. */
  readonly visit: 'none' | 'lost' | 'answered';
}

/** So many tunnels, and still no request: this is no first hour any more. */
const TRIES_MAX = 5;

/** Until the first request has come, however often the page is loaded. `newest`: the newest tunnels, at least so many as are asked for. */
export const isNewAccount = (newest: readonly Pick<TunnelLogEntry, 'request_count'>[]): boolean =>
  newest.length < TRIES_MAX && newest.every(({ request_count }) => request_count === 0);

/** `port`: where the person's own service is. */
export const readFirstRun = (data: FirstRunData, port: number): FirstRun => {
  const service = serviceStep(data, port);
  const visit = data.requests.length > 0 && !service.isDone ? 'lost' : 'none';
  return { key: keyStep(data), service, tunnel: tunnelStep(data), visit: service.isDone ? 'answered' : visit };
};

const keyStep = ({ keys, tunnel }: FirstRunData): Step => {
  const key = keys.find(({ last_used_at }) => last_used_at !== null) ?? keys[0];
  if (key === undefined) return { isDone: false, note: 'Waiting for you to sign in' };
  // The time of its use is written a little later than the tunnel.
  const isUsed = key.last_used_at !== null || tunnel !== undefined;
  return { isDone: true, note: `API key “${key.label}” created. ${isUsed ? 'Already used.' : 'Not used yet.'}` };
};

/** Nobody but the client sees the service: that it runs is known once it has answered. */
const serviceStep = ({ requests, tunnel }: FirstRunData, port: number): Step => {
  // An edge that keeps no requests counts them all the same.
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

/** The use of a key says nothing about a client: signing in on the command line uses it, too, and may be long ago. */
const tunnelStep = ({ tunnel }: FirstRunData): Step => {
  if (tunnel === undefined) return { isDone: false, note: 'Waiting for your first tunnel' };
  if (tunnel.unregistered_at !== null) {
    return { isDone: true, note: 'Your tunnel has stopped. Run the command again to continue.' };
  }
  return { isDone: true, note: 'Your tunnel is live.' };
};
