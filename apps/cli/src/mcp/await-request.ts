// Waiting for a request of a tunnel for any length of time: successive long polls, each with the cursor of the previous response. An
// older edge without long polls is polled for its list of captured requests instead.
import { CAPTURE_LIST_LIMIT, type CapturedRequest, REQUEST_WAIT_SECS } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type EdgeTunnels, isOfOldEdge } from '../api/edge-tunnels.ts';
import type { Io } from '../io/io.ts';
import { pause } from '../io/until-stopped.ts';
import { CLI_LIMITS } from '../limits.ts';

export interface AwaitedRequest {
  readonly tunnelId: string;
  readonly method?: string | undefined;
  readonly pathContains?: string | undefined;
  readonly withinMs: number;
}

type Wait = (filter: AwaitedRequest) => Promise<CapturedRequest | null>;

/** Returns the first matching request that finishes from now on, or null if the time runs out. Rejects when `signal` is aborted. */
export const awaitRequest = async (
  edge: EdgeTunnels,
  filter: AwaitedRequest,
  signal: AbortSignal,
  io: Pick<Io, 'clock'>,
): Promise<CapturedRequest | null> => {
  try {
    return await pollLong(edge, signal, io)(filter);
  } catch (error) {
    signal.throwIfAborted();
    if (!isOfOldEdge(error)) throw error;
  }
  return pollList(edge, signal, io)(filter);
};

const pollLong =
  (edge: EdgeTunnels, signal: AbortSignal, io: Pick<Io, 'clock'>): Wait =>
  async ({ tunnelId, method, pathContains, withinMs }) => {
    const until = io.clock.monotonic() + withinMs;
    let after: string | null = null;
    for (;;) {
      const left = Math.ceil((until - io.clock.monotonic()) / 1000);
      if (left < 1) return null;
      const seconds = Math.min(left, REQUEST_WAIT_SECS.max);
      try {
        const { request, cursor } = await edge.next(tunnelId, { method, pathContains, after, seconds }, signal);
        if (request !== null) return request;
        after = cursor;
      } catch (error) {
        // An edge that has responded before will come back. The cursor tells the edge which requests have been seen.
        if (signal.aborted || after === null || !isPassing(error)) throw error;
        await pause(CLI_LIMITS.REQUESTS_LOOK_EVERY_MS, signal, io);
      }
      signal.throwIfAborted();
    }
  };

const isPassing = (error: unknown): boolean =>
  error instanceof Fault && error.retryable && (error.code !== 'INTERNAL' || error.cause === undefined);

const pollList =
  (edge: EdgeTunnels, signal: AbortSignal, io: Pick<Io, 'clock'>): Wait =>
  async ({ tunnelId, withinMs, ...filter }) => {
    const until = io.clock.monotonic() + withinMs;
    // Returns finished requests. A request in progress now is missing from the first list, and counts as new once finished.
    const finished = async (): Promise<CapturedRequest[]> =>
      (await edge.requests(tunnelId, CAPTURE_LIST_LIMIT.max, signal)).requests.filter(
        (request) => request.duration_ms !== null,
      );
    const before = new Set((await finished()).map(({ id }) => id));
    while (io.clock.monotonic() < until) {
      await pause(CLI_LIMITS.REQUESTS_LOOK_EVERY_MS, signal, io);
      signal.throwIfAborted();
      const found = (await finished()).findLast((request) => !before.has(request.id) && isWanted(request, filter));
      if (found !== undefined) return found;
    }
    return null;
  };

const isWanted = (
  { method, path }: CapturedRequest,
  filter: Pick<AwaitedRequest, 'method' | 'pathContains'>,
): boolean =>
  (filter.method === undefined || method.toUpperCase() === filter.method.toUpperCase()) &&
  path.includes(filter.pathContains ?? '');
