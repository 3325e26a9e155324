// The tunnels of an edge and their requests, by its REST and the API key.
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

/** live tunnels that `tunnel list`, `requests` and `replay` read; more are not looked at */
export const ACCOUNT_TUNNELS_MAX = 10_000;

export interface NextRequest {
  readonly method?: string | undefined;
  readonly pathContains?: string | undefined;
  /** Of the answer before; null: from now on. */
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

  /** Newest first, as the platform has them. */
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

  /** The newest `most` that are kept. */
  requests(id: string, most: number, signal?: AbortSignal): Promise<CaptureList> {
    return collectCaptures(({ limit, cursor }) => {
      const query = new URLSearchParams({ limit: String(limit), ...(cursor === undefined ? {} : { cursor }) });
      const path = `${pathOf(id)}/requests?${query.toString()}`;
      return this.#ask({ method: 'GET', path, answer: captureList, what: 'list of requests' }, signal);
    }, most);
  }

  /** CAPTURE_UNKNOWN when it is not kept (any more). */
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

  /** The next that finishes; nothing is missed between two calls when the second one has the cursor of the first. */
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

  /** Settles with the new request. */
  replay(id: string, requestId: string, signal?: AbortSignal): Promise<CapturedRequest> {
    const path = `${pathOf(id)}/requests/${segment(requestId, 'CAPTURE_UNKNOWN')}/replay`;
    const withinMs = CLI_LIMITS.REPLAY_ANSWER_TIMEOUT_MS;
    return this.#ask({ method: 'POST', path, answer: capturedRequest, what: 'captured request', withinMs }, signal);
  }

  async #ask<T>(call: EdgeCall<T>, signal: AbortSignal | undefined): Promise<T> {
    return (await askEdge(this.#source, call, signal)).value;
  }
}

/** It does not know the path: the edge is of before. */
export const isOfOldEdge = (error: unknown): boolean => error instanceof Fault && error.code === 'API_NOT_FOUND';

const pathOf = (id: string): string => `/api/tunnels/${segment(id, 'TUNNEL_UNKNOWN')}`;

/** What is empty, a dot or two, or the word for the request that comes next, would lead to another path: no id is like that. */
const segment = (id: string, otherwise: 'TUNNEL_UNKNOWN' | 'CAPTURE_UNKNOWN'): string => {
  if (/^(?:\.{0,2}|next)$/.test(id)) throw new Fault(otherwise);
  return encodeURIComponent(id);
};
