// Waits for the next request of a tunnel, with consecutive long polls to the tunnel's edge that leave no gap.
import { CAPTURE_LIST_LIMIT, type CapturedRequest, REQUEST_WAIT_SECS } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';
import { findOfProtocol, livingRegion, type TunnelEdgeContext } from './edge-state.ts';

/** Polling interval for edges of an earlier version, which only have a list of requests. */
const REQUEST_POLL_MS = 1000;

export interface AwaitRequestContext extends TunnelEdgeContext, Pick<ServiceContext, 'clock'> {}

export interface RequestFilter {
  /** HTTP method to wait for, case-insensitive. Without a value, every method matches. */
  readonly method?: string | undefined;
  /** Text that must occur in the request's path, in the form shown to users. */
  readonly pathContains?: string | undefined;
}

export interface AwaitBounds {
  readonly withinMs: number;
  /** Aborts the wait for a request, which rejects immediately with the signal's reason. */
  readonly signal: AbortSignal;
}

/** Parameters of a wait for a request at an edge. */
interface Wait extends RequestFilter, AwaitBounds {
  readonly regionId: string;
  readonly tunnelId: string;
  readonly accountId: string;
  /** Deadline of the wait, on the monotonic clock. */
  readonly untilMs: number;
}

/**
 * Waits for the first matching request that finishes from now on. Returns null if no request finishes in time. Throws TUNNEL_CLOSED if
 * the tunnel has ended or ends meanwhile.
 */
export const awaitRequest = async (
  context: AwaitRequestContext,
  actor: UserActor,
  id: string,
  filter: RequestFilter,
  bounds: AwaitBounds,
): Promise<CapturedRequest | null> => {
  const entry = await findOfProtocol(context, actor, id, 'http');
  const regionId = livingRegion(entry);
  if (regionId === null) throw new Fault('TUNNEL_CLOSED');
  const untilMs = context.clock.monotonic() + bounds.withinMs;
  const wait = { ...filter, ...bounds, regionId, tunnelId: entry.tunnel_id, accountId: actor.userId, untilMs };
  try {
    return await pollNext(context, wait);
  } catch (error) {
    // An edge of an earlier version does not have the path for long polls.
    if (!(error instanceof Fault) || error.code !== 'API_NOT_FOUND') throw error;
    return pollList(context, wait);
  }
};

const pollNext = async (context: AwaitRequestContext, wait: Wait): Promise<CapturedRequest | null> => {
  const { edges, clock } = context;
  const { regionId, tunnelId, accountId, method, pathContains, signal, untilMs } = wait;
  let after: string | undefined;
  for (;;) {
    const leftSecs = Math.ceil((untilMs - clock.monotonic()) / 1000);
    const withinSecs = Math.max(REQUEST_WAIT_SECS.min, Math.min(REQUEST_WAIT_SECS.max, leftSecs));
    const answer = await edges.nextRequest(regionId, tunnelId, accountId, {
      method,
      pathContains,
      after,
      withinSecs,
      signal,
    });
    if (answer.request !== null || clock.monotonic() >= untilMs) return answer.request;
    after = answer.cursor ?? undefined;
  }
};

/** Polls the edge's list of requests. Requests that had finished before the first poll are ignored. */
const pollList = async (context: AwaitRequestContext, wait: Wait): Promise<CapturedRequest | null> => {
  const { edges, clock } = context;
  const { regionId, tunnelId, accountId, signal, untilMs } = wait;
  const finished = async (): Promise<CapturedRequest[]> => {
    const { requests } = await edges.requests(regionId, tunnelId, accountId, { limit: CAPTURE_LIST_LIMIT.max });
    // The list has the newest request first; reversed, so that the earliest matching request is returned.
    return requests.filter((request) => request.duration_ms !== null).reverse();
  };
  const before = new Set((await finished()).map((request) => request.id));
  for (;;) {
    const leftMs = untilMs - clock.monotonic();
    if (leftMs <= 0) return null;
    await pause(clock, Math.min(leftMs, REQUEST_POLL_MS), signal);
    const found = (await finished()).find((request) => !before.has(request.id) && isWanted(request, wait));
    if (found !== undefined) return found;
  }
};

const isWanted = ({ method, path }: CapturedRequest, filter: RequestFilter): boolean =>
  (filter.method === undefined || method.toUpperCase() === filter.method.toUpperCase()) &&
  path.includes(filter.pathContains ?? '');

const pause = (clock: ServiceContext['clock'], ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = clock.setTimeout(() => {
      signal.removeEventListener('abort', leave);
      resolve();
    }, ms);
    const leave = (): void => {
      timer.cancel();
      reject(signal.reason as Error);
    };
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
