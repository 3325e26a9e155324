// Tunnels of an edge and their requests, from the edge's REST API with the API key.
import {
  type AwaitedRequest,
  awaitedRequest,
  CAPTURE_LIST_LIMIT,
  type CapturedRequest,
  type CaptureList,
  capturedRequest,
  captureList,
  collectCaptures,
  type EdgeStatus,
  type EdgeTunnel,
  edgeStatus,
  edgeTunnel,
  edgeTunnels,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { CLI_LIMITS } from '../limits.ts';
import { askEdge, type EdgeCall, type EdgeSource, tellEdge } from './edge-api.ts';

/** Maximum live tunnels read by `tunnel list`, `requests` and `replay`. Further tunnels are ignored. */
export const ACCOUNT_TUNNELS_MAX = 10_000;

export interface NextRequest {
  readonly method?: string | undefined;
  readonly pathContains?: string | undefined;
  /** Cursor of the previous response. Null waits for requests from now on. */
  readonly after: string | null;
  readonly seconds: number;
}

export class EdgeTunnels {
  readonly #source: EdgeSource;

  constructor(source: EdgeSource) {
    this.#source = source;
  }

  status(signal?: AbortSignal): Promise<EdgeStatus> {
    return this.#ask({ method: 'GET', path: '/api/status', answer: edgeStatus, what: 'status of an edge' }, signal);
  }

  /** Returns the live tunnels newest first, in the same order as the platform. */
  async list(signal?: AbortSignal): Promise<readonly EdgeTunnel[]> {
    const call = { method: 'GET', path: '/api/tunnels', answer: edgeTunnels, what: 'list of tunnels' } as const;
    return (await this.#ask(call, signal)).slice(-ACCOUNT_TUNNELS_MAX).reverse();
  }

  get(id: string, signal?: AbortSignal): Promise<EdgeTunnel> {
    return this.#ask({ method: 'GET', path: pathOf(id), answer: edgeTunnel, what: 'tunnel' }, signal);
  }

  close(id: string, signal?: AbortSignal): Promise<void> {
    return tellEdge(this.#source, { method: 'DELETE', path: pathOf(id) }, signal);
  }

  /** Returns the newest `most` captured requests of a tunnel. */
  requests(id: string, most: number, signal?: AbortSignal): Promise<CaptureList> {
    return collectCaptures(({ limit, cursor }) => {
      const query = new URLSearchParams({ limit: String(limit), ...(cursor === undefined ? {} : { cursor }) });
      const path = `${pathOf(id)}/requests?${query.toString()}`;
      return this.#ask({ method: 'GET', path, answer: captureList, what: 'list of requests' }, signal);
    }, most);
  }

  /** Returns a captured request. Rejects with CAPTURE_UNKNOWN if the request was never captured or has been dropped. */
  async request(id: string, requestId: string, signal?: AbortSignal): Promise<CapturedRequest> {
    const path = `${pathOf(id)}/requests/${segment(requestId, 'CAPTURE_UNKNOWN')}`;
    try {
      return await this.#ask({ method: 'GET', path, answer: capturedRequest, what: 'captured request' }, signal);
    } catch (error) {
      if (!isOfOldEdge(error)) throw error;
    }
    const { requests } = await this.requests(id, CAPTURE_LIST_LIMIT.max, signal);
    const found = requests.find((request) => request.id === requestId);
    if (found === undefined) throw new Fault('CAPTURE_UNKNOWN');
    return found;
  }

  /** Waits for the next request to finish. A second call with the cursor of the first call misses no request in between. */
  next(
    id: string,
    { method, pathContains, after, seconds }: NextRequest,
    signal?: AbortSignal,
  ): Promise<AwaitedRequest> {
    const query = new URLSearchParams({
      timeout_secs: String(seconds),
      ...(method === undefined ? {} : { method }),
      ...(pathContains === undefined ? {} : { path_contains: pathContains }),
      ...(after === null ? {} : { after }),
    });
    const path = `${pathOf(id)}/requests/next?${query.toString()}`;
    const withinMs = seconds * 1000 + CLI_LIMITS.WAIT_ANSWER_SLACK_MS;
    return this.#ask({ method: 'GET', path, answer: awaitedRequest, what: 'request', withinMs }, signal);
  }

  /** Replays a captured request. Resolves with the new request. */
  replay(id: string, requestId: string, signal?: AbortSignal): Promise<CapturedRequest> {
    const path = `${pathOf(id)}/requests/${segment(requestId, 'CAPTURE_UNKNOWN')}/replay`;
    const withinMs = CLI_LIMITS.REPLAY_ANSWER_TIMEOUT_MS;
    return this.#ask({ method: 'POST', path, answer: capturedRequest, what: 'captured request', withinMs }, signal);
  }

  async #ask<T>(call: EdgeCall<T>, signal: AbortSignal | undefined): Promise<T> {
    return (await askEdge(this.#source, call, signal)).value;
  }
}

/** Returns true if the edge does not know the API path, because the edge has an older version. */
export const isOfOldEdge = (error: unknown): boolean => error instanceof Fault && error.code === 'API_NOT_FOUND';

const pathOf = (id: string): string => `/api/tunnels/${segment(id, 'TUNNEL_UNKNOWN')}`;

/**
 * Encodes an id for a URL path. Rejects an empty id, `.`, `..` and `next` (the path of the next request), which would address another
 * resource. No real id has such a value.
 */
const segment = (id: string, otherwise: 'TUNNEL_UNKNOWN' | 'CAPTURE_UNKNOWN'): string => {
  if (/^(?:\.{0,2}|next)$/.test(id)) throw new Fault(otherwise);
  return encodeURIComponent(id);
};
