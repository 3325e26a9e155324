// The tunnels of an edge and their requests, by its REST and the API key.
import {
  CAPTURE_LIST_LIMIT,
  type CapturedRequest,
  type CaptureList,
  capturedRequest,
  captureList,
  type EdgeStatus,
  type EdgeTunnel,
  edgeStatus,
  edgeTunnel,
  edgeTunnels,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { CLI_LIMITS } from '../limits.ts';
import { askEdge, type EdgeCall, type EdgeSource, tellEdge } from './edge-api.ts';

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
    return (await this.#ask(call, signal)).slice(-CLI_LIMITS.ACCOUNT_TUNNELS_MAX).reverse();
  }

  get(id: string, signal?: AbortSignal): Promise<EdgeTunnel> {
    return this.#ask({ method: 'GET', path: pathOf(id), answer: edgeTunnel, what: 'tunnel' }, signal);
  }

  close(id: string, signal?: AbortSignal): Promise<void> {
    return tellEdge(this.#source, { method: 'DELETE', path: pathOf(id) }, signal);
  }

  requests(id: string, limit: number, signal?: AbortSignal): Promise<CaptureList> {
    const path = `${pathOf(id)}/requests?limit=${limit}`;
    return this.#ask({ method: 'GET', path, answer: captureList, what: 'list of requests' }, signal);
  }

  /** CAPTURE_UNKNOWN when it is not kept (any more). */
  async request(id: string, requestId: string, signal?: AbortSignal): Promise<CapturedRequest> {
    const { requests } = await this.requests(id, CAPTURE_LIST_LIMIT.max, signal);
    const found = requests.find((request) => request.id === requestId);
    if (found === undefined) throw new Fault('CAPTURE_UNKNOWN');
    return found;
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

const pathOf = (id: string): string => `/api/tunnels/${segment(id, 'TUNNEL_UNKNOWN')}`;

/** What is empty, or a dot or two, would lead to another path: no id is like that. */
const segment = (id: string, otherwise: 'TUNNEL_UNKNOWN' | 'CAPTURE_UNKNOWN'): string => {
  if (/^\.{0,2}$/.test(id)) throw new Fault(otherwise);
  return encodeURIComponent(id);
};
