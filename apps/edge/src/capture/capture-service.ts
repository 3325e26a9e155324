// Access to captured requests: who can see and replay which requests. Captures are shown parsed, with secrets redacted, and with bodies
// only for their owner.

import type { AwaitedRequest, CapturedRequest, CaptureList } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { type CapturedBody, readableBody, redactFields, redactUrl, type ShownField } from '@tunnel/http1';
import { maySee, type Owner, ownerKey, sameOwner } from '@tunnel/rules/tunnels';
import type { Tunnel } from '../routing/tunnel.ts';
import type { CaptureStore } from './capture-store.ts';
import type { CaptureRecorder } from './recorder.ts';
import type { ReplayRequest, Replays } from './replay.ts';
import {
  BODY_BOUNDS,
  fieldValue,
  type HeadLines,
  headLines,
  isAnsweredByRule,
  pathAndQuery,
  whyNotReplayable,
} from './stored-head.ts';

export interface CaptureServiceOptions {
  readonly store: CaptureStore;
  readonly tunnels: { get(tunnelId: string): Tunnel | undefined };
  readonly replays: Pick<Replays, 'replay'>;
}

export interface ReplayOrder extends Pick<ReplayRequest, 'visitorAddress' | 'edit'> {
  readonly tunnelId: string;
  readonly requestId: string;
}

/** Which page of a tunnel's captured requests to list. */
export interface ListOrder {
  readonly tunnelId: string;
  readonly limit: number;
  /** Cursor of the page: `next_cursor` of an earlier response. Undefined to start with the newest request. */
  readonly cursor?: string | undefined;
  /** Selects requests answered by a rule (true) or passed to the service (false). Undefined for both. */
  readonly isAnswered?: boolean | undefined;
}

/** Which captured request to wait for, and the maximum time. */
export interface AwaitOrder {
  readonly tunnelId: string;
  /** HTTP method of the awaited request, compared without case. Undefined for any method. */
  readonly method?: string | undefined;
  /** Text that the awaited request's path as shown must contain. Redacted parts cannot be matched. */
  readonly pathContains?: string | undefined;
  /** Cursor of the previous wait. Undefined for requests that finish from now on. */
  readonly after?: string | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface CaptureAccess {
  /** Tunnel of the captured requests. Undefined if the tunnel has closed. */
  readonly tunnel: Tunnel | undefined;
  readonly view: CaptureView;
}

export class CaptureService {
  readonly #store: CaptureStore;
  readonly #tunnels: CaptureServiceOptions['tunnels'];
  readonly #replays: CaptureServiceOptions['replays'];

  constructor({ store, tunnels, replays }: CaptureServiceOptions) {
    this.#store = store;
    this.#tunnels = tunnels;
    this.#replays = replays;
  }

  async list(caller: Owner, { tunnelId, limit, cursor, isAnswered }: ListOrder): Promise<CaptureList> {
    const { view } = this.#accessTo(caller, tunnelId);
    const isWanted =
      isAnswered === undefined ? undefined : (one: CaptureRecorder) => isAnsweredByRule(one) === isAnswered;
    const before = cursor === undefined ? undefined : this.#store.readPageCursor(cursor);
    if (cursor !== undefined && before === undefined) {
      throw new Fault('API_BAD_REQUEST', { reason: 'cursor must be the next_cursor of an earlier response' });
    }
    const { recorders, truncated, nextCursor } = this.#store.list(tunnelId, limit, { before, isWanted });
    const requests: CapturedRequest[] = [];
    // Bodies are decompressed sequentially, because a hundred at once would occupy Node's thread pool.
    for (const recorder of recorders) requests.push(await presentCapture(recorder, view));
    return { tunnel_id: tunnelId, requests, truncated, next_cursor: nextCursor };
  }

  async find(caller: Owner, tunnelId: string, requestId: string): Promise<CapturedRequest> {
    const { view } = this.#accessTo(caller, tunnelId);
    const recorder = this.#store.find(tunnelId, requestId);
    if (recorder === undefined) throw new Fault('CAPTURE_UNKNOWN');
    return presentCapture(recorder, view);
  }

  async awaitNext(caller: Owner, order: AwaitOrder): Promise<AwaitedRequest> {
    const { tunnelId, timeoutMs, signal } = order;
    const { tunnel, view } = this.#accessTo(caller, tunnelId);
    if (tunnel === undefined) throw new Fault('TUNNEL_CLOSED');
    const isWanted = wantedBy(order);
    const found =
      this.#finishedBefore(order)?.find(isWanted) ??
      (await this.#store.waits.wait({ tunnelId, holder: ownerKey(caller), timeoutMs, signal, isWanted }));
    // The cursor is created after the wait has ended and before the response is sent, so that the next call finds requests that finish in
    // between.
    if (found === null) return { request: null, cursor: this.#store.cursor() };
    return { request: await presentCapture(found, view), cursor: null };
  }

  /** Returns requests that finished between the previous call and the current call, or undefined without a cursor. */
  #finishedBefore({ tunnelId, after }: AwaitOrder): CaptureRecorder[] | undefined {
    if (after === undefined) return undefined;
    const finished = this.#store.finishedSince(tunnelId, after);
    if (finished === undefined)
      throw new Fault('API_BAD_REQUEST', { reason: 'after must be the cursor of an earlier response' });
    return finished;
  }

  async replay(caller: Owner, { tunnelId, requestId, ...how }: ReplayOrder): Promise<CapturedRequest> {
    const { tunnel, view } = this.#accessTo(caller, tunnelId);
    const original = this.#store.find(tunnelId, requestId);
    if (original === undefined) throw new Fault('CAPTURE_UNKNOWN');
    return presentCapture(await this.#replays.replay({ tunnel, original, ...how }), view);
  }

  #accessTo(caller: Owner, tunnelId: string): CaptureAccess {
    const tunnel = this.#tunnels.get(tunnelId);
    const owner = tunnel?.owner ?? this.#store.ownerOf(tunnelId);
    if (owner === undefined || !maySee(caller, owner)) throw new Fault('TUNNEL_UNKNOWN');
    if (tunnel !== undefined && tunnel.http === null) {
      throw new Fault('TUNNEL_NOT_HTTP', { protocol: tunnel.protocol });
    }
    const idOf = (recorder: CaptureRecorder): string => this.#store.idOf(recorder);
    // Bodies are private to the account: the operator sees its requests without bodies.
    return { tunnel, view: { tunnelId, withBodies: sameOwner(caller, owner), idOf } };
  }
}

export interface CaptureView {
  readonly tunnelId: string;
  readonly withBodies: boolean;
  readonly idOf: CaptureStore['idOf'];
}

export const presentCapture = async (recorder: CaptureRecorder, view: CaptureView): Promise<CapturedRequest> => {
  const { info, requestText, responseText, requestBody, responseBody, status, durationMs } = recorder;
  const request = headLines(requestText);
  const response = headLines(responseText);
  return {
    id: view.idOf(recorder),
    tunnel_id: view.tunnelId,
    at: new Date(info.at).toISOString(),
    ...shownLine(request, recorder.askedPath),
    status: status === 0 ? null : status,
    duration_ms: durationMs === null ? null : Math.round(durationMs * 1000) / 1000,
    request_headers: toRecord(request.fields, recorder.secretFields),
    response_headers: toRecord(response.fields),
    request_size: requestBody?.bytes ?? 0,
    response_size: responseBody?.bytes ?? 0,
    request_body: view.withBodies ? await bodyOf(request, requestBody) : null,
    response_body: view.withBodies ? await bodyOf(response, responseBody) : null,
    aborted: recorder.aborted,
    error: recorder.fault,
    replayable: whyNotReplayable(recorder, request) === null,
    ...(info.replayOf === null ? {} : { replay_of: info.replayOf }),
    ...(info.isEdited ? { edited: true } : {}),
    policy: recorder.policy,
  };
};

const shownLine = (
  { first }: HeadLines,
  askedPath: string | null,
): { readonly method: string; readonly path: string } => {
  const [method = '', target = ''] = first.split(' ');
  return { method, path: redactUrl(askedPath ?? pathAndQuery(target)) };
};

const wantedBy = ({ method, pathContains = '' }: AwaitOrder): ((recorder: CaptureRecorder) => boolean) => {
  const wanted = method?.toUpperCase();
  return ({ requestText, askedPath }) => {
    const line = shownLine(headLines(requestText), askedPath);
    return (wanted === undefined || line.method.toUpperCase() === wanted) && line.path.includes(pathContains);
  };
};

/** Lower-case names. Values of repeated fields are joined, as RFC 9110, 5.3 allows. */
const toRecord = (fields: readonly ShownField[], secretFields: readonly string[] = []): Record<string, string> => {
  const record = new Map<string, string>();
  for (const { name, value } of redactFields(fields, secretFields)) {
    const lower = name.toLowerCase();
    const before = record.get(lower);
    record.set(lower, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(record);
};

const bodyOf = (head: HeadLines, body: CapturedBody | null): Promise<string | null> =>
  readableBody(
    {
      kept: body?.kept ?? '',
      contentType: fieldValue(head, 'content-type'),
      contentEncoding: fieldValue(head, 'content-encoding'),
    },
    BODY_BOUNDS,
  );
