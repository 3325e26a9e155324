// How far somebody new has come, from what the API knows. Pure.
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

export const readFirstRun = (data: FirstRunData): FirstRun => {
  const service = serviceStep(data);
  const visit = data.requests.length > 0 && !service.isDone ? 'lost' : 'none';
  return { key: keyStep(data), service, tunnel: tunnelStep(data), visit: service.isDone ? 'answered' : visit };
};

const keyStep = ({ keys, tunnel }: FirstRunData): Step => {
  const key = keys.find(({ last_used_at }) => last_used_at !== null) ?? keys[0];
  if (key === undefined) return { isDone: false, note: 'Waiting for your first key' };
  // The time of its use is written a little later than the tunnel.
  const use =
    key.last_used_at === null && tunnel === undefined ? 'It has not been used yet.' : 'A client has come with it.';
  return { isDone: true, note: `You have the key “${key.label}”. ${use}` };
};

/** Nobody but the client sees the service: that it runs is known once it has answered. */
const serviceStep = ({ requests, tunnel }: FirstRunData): Step => {
  // An edge that keeps no requests counts them all the same.
  const isCountedOnly = requests.length === 0 && (tunnel?.request_count ?? 0) > 0;
  if (isCountedOnly || requests.some(isAnswered)) return { isDone: true, note: 'Your service has answered a visitor.' };
  const failed = requests.find(({ error }) => error !== null);
  if (failed !== undefined) {
    const note = `A visitor came, but nothing answers on port 3000 (${failed.error}). Run this command, then visit again.`;
    return { isDone: false, note, isTrouble: true };
  }
  return { isDone: false, note: 'Seen when it answers its first visitor' };
};

const isAnswered = ({ status, error }: CapturedRequest): boolean => status !== null && error === null;

const tunnelStep = ({ tunnel, keys }: FirstRunData): Step => {
  if (tunnel === undefined) {
    const came = keys.some(({ last_used_at }) => last_used_at !== null);
    return {
      isDone: false,
      note: came ? 'A client is connected; waiting for its tunnel' : 'Waiting for your first tunnel',
    };
  }
  if (tunnel.unregistered_at !== null) {
    return { isDone: true, note: 'Your tunnel was live, and has ended. Run the command again to go on.' };
  }
  return { isDone: true, note: `Your tunnel ${tunnel.label} is live.` };
};
