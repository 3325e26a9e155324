// Sends a captured request to the local service again, unchanged or edited, and captures the replay. Policies do not run, because the
// captured request already contains their changes.

import { Fault } from '@tunnel/errors';
import {
  editRequest,
  parseRequestHead,
  type RequestEdit,
  type RequestHead,
  type ResponseHead,
  redactUrl,
} from '@tunnel/http1';
import type { ReportInternalError } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { FairShare } from '@tunnel/rules/rate';
import { ownerKey } from '@tunnel/rules/tunnels';
import type { Clock, Timer } from '@tunnel/runtime';
import type { Tunnel } from '../routing/tunnel.ts';
import type { ResponseHandler } from '../upstream/response-handler.ts';
import type { ServiceRequests } from '../upstream/service-requests.ts';
import type { UpstreamStream } from '../upstream/upstream.ts';
import type { UpstreamRequest } from '../upstream/upstream-request.ts';
import type { CaptureStore } from './capture-store.ts';
import type { CaptureRecorder } from './recorder.ts';
import { BODY_BOUNDS, headLines, whyNotReplayable } from './stored-head.ts';

/**
 * Maximum time for the complete response of a replay. A longer response is cut off and shown as far as it was received.
 * @limit api: Replay, time to receive the complete response | the response is cut off
 */
export const REPLAY_TIMEOUT_MS = 30_000;
/** Maximum size of a replay's response. A longer response is cut off, because a response can be endless. */
const REPLAY_RESPONSE_MAX_BYTES = 64 * 1024 * 1024;
/** Maximum concurrent replays of all tunnels. Each holds a stream and an API call. */
const REPLAYS_AT_ONCE = 64;
/**
 * Maximum concurrent replays of an account. A service that never responds thus only blocks replays of its owner.
 * @limit api: Concurrent replays per account | 429 `CAPTURE_REPLAYS_BUSY`
 */
export const REPLAYS_AT_ONCE_PER_OWNER = 16;

export interface ReplayContext {
  readonly store: CaptureStore;
  readonly clock: Clock;
  readonly http: { readonly services: ServiceRequests; countRequest(tunnel: Tunnel): void };
}

export interface ReplayRequest {
  /** Tunnel of the captured request. Undefined if the tunnel has closed. */
  readonly tunnel: Tunnel | undefined;
  readonly original: CaptureRecorder;
  /** IP address of the API caller who replays the request, sent as the visitor's address. */
  readonly visitorAddress: string;
  /** Changes to the request. Undefined or empty to send the request unchanged. */
  readonly edit?: RequestEdit;
}

export class Replays {
  readonly #context: ReplayContext;
  /** Replays in progress, by owner of the tunnel. An account's slow services do not block replays of other accounts. */
  readonly #underWay = new FairShare({
    limit: REPLAYS_AT_ONCE,
    perHolder: REPLAYS_AT_ONCE_PER_OWNER,
  });

  constructor(context: ReplayContext) {
    this.#context = context;
  }

  /** Replays a request and returns the finished capture. Throws a fault if there was no response. */
  async replay({ tunnel, original, visitorAddress, edit = {} }: ReplayRequest): Promise<CaptureRecorder> {
    const { store, clock } = this.#context;
    const reason =
      tunnel === undefined ? 'the tunnel is closed' : whyNotReplayable(original, headLines(original.requestText));
    if (tunnel === undefined || reason !== null) throw refusal(reason ?? '');
    const { head, body, isEdited } = await messageOf(original, ownEditOf(original, edit));
    const owner = ownerKey(tunnel.owner);
    if (this.#underWay.refusal(owner) !== null) {
      const limit = this.#underWay.of(owner);
      const seconds = REPLAY_TIMEOUT_MS / 1000;
      throw new Fault('CAPTURE_REPLAYS_BUSY', { limit, seconds });
    }
    const { serviceName } = original.info;
    const replay = { original, isEdited };
    const recorder = store.begin(tunnel, head, clock.monotonic(), 'data', { serviceName, replay });
    if (recorder === null) throw refusal('capturing is off for the tunnel');
    this.#underWay.take(owner);
    try {
      await this.#send(tunnel, { head, body, visitorAddress }, recorder);
    } finally {
      this.#underWay.give(owner);
    }
    return recorder;
  }

  async #send(
    tunnel: Tunnel,
    { head, body, visitorAddress }: { head: RequestHead; body: Buffer; visitorAddress: string },
    recorder: CaptureRecorder,
  ): Promise<void> {
    const { clock, http } = this.#context;
    const hostHeader = tunnel.http?.hostHeader ?? null;
    const handler = new ReplayHandler(recorder, clock, http.services.report);
    const request = http.services.create(
      tunnel,
      {
        head,
        options: {
          visitorAddress,
          proto: tunnel.publicUrl.startsWith('https:') ? 'https' : 'http',
          hostHeader: hostHeader === null ? 'keep' : { rewrite: hostHeader },
          replayOf: recorder.info.replayOf ?? undefined,
        },
        serviceName: recorder.info.serviceName,
        hasBody: body.length > 0,
        bodyForm: 'data',
        // A replayed request must not be retried on another member of the group.
        hasOthers: null,
        recorder,
      },
      handler,
    );
    http.countRequest(tunnel);
    handler.begin(request);
    request.start();
    if (body.length > 0) request.writeBody(body, 0, body.length, true);
    request.endBody();
    await handler.done;
  }
}

/** Removes the path from an edit if it equals the shown path, because the service received a path changed by a rule. */
const ownEditOf = ({ askedPath }: CaptureRecorder, edit: RequestEdit): RequestEdit => {
  const { path, ...others } = edit;
  return askedPath !== null && path === redactUrl(askedPath) ? others : edit;
};

const refusal = (reason: string): Fault => new Fault('CAPTURE_NOT_REPLAYABLE', { reason });

interface Message {
  readonly head: RequestHead;
  readonly body: Buffer;
  readonly isEdited: boolean;
}

const messageOf = async ({ requestText, requestBody }: CaptureRecorder, edit: RequestEdit): Promise<Message> => {
  const head = parseRequestHead(requestText);
  if (head.kind === 'problem') throw refusal(head.reason);
  const kept = requestBody?.kept ?? '';
  const edited = await editRequest({ head, body: kept }, edit, BODY_BOUNDS);
  if (edited?.kind === 'problem') throw new Fault('API_BAD_REQUEST', { reason: edited.reason });
  if (edited !== null) return { head: headAgain(edited.head, edited.body.length), body: edited.body, isEdited: true };
  const body = Buffer.from(kept, 'latin1');
  return { head: headAgain(head, body.length), body, isEdited: false };
};

/** Returns the head without fields of the visitor's connection, and with the actual length of the body. */
const headAgain = (head: RequestHead, bodyBytes: number): RequestHead => {
  return {
    ...head,
    // The replay is sent as HTTP/1.0, because it waits neither for 100 Continue nor for trailers.
    version: '1.0',
    connectionNames: [...(head.connectionNames ?? []), 'trailer'],
    framing: head.framing.kind === 'none' ? head.framing : { kind: 'length', length: bodyBytes },
    upgrade: null,
  };
};

const UNASKED: StreamReason = { code: 'cancelled', text: 'replays cannot switch protocols' };

/** Waits for the response, within limits of time and size. Discards the data, because the request writes it to the capture. */
class ReplayHandler implements ResponseHandler {
  /** Resolves when the response has ended or was cut off. Rejects with a fault if there was no response. */
  readonly done: Promise<void>;
  readonly #recorder: CaptureRecorder;
  readonly #clock: Clock;
  readonly #report: ReportInternalError;
  #request: UpstreamRequest | null = null;
  #timer: Timer | null = null;
  #hasHead = false;
  #leftBytes: number = REPLAY_RESPONSE_MAX_BYTES;
  #resolve: () => void = () => {};
  #reject: (fault: Fault) => void = () => {};

  constructor(recorder: CaptureRecorder, clock: Clock, report: ReportInternalError) {
    this.#report = report;
    this.#recorder = recorder;
    this.#clock = clock;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Avoids an unhandled rejection if the replay fails before it is awaited.
    this.done.catch(() => {});
  }

  begin(request: UpstreamRequest): void {
    this.#request = request;
    this.#timer = this.#clock.setTimeout(() => {
      try {
        this.#cut();
      } catch (error) {
        this.abandon(error, 'replay.timer');
      }
    }, REPLAY_TIMEOUT_MS);
  }

  abandon(error: unknown, where: string): void {
    try {
      this.#report(error, where);
      this.#request?.giveUp();
    } finally {
      this.#settle(new Fault('INTERNAL'));
    }
  }

  #cut(): void {
    const fault = new Fault('LOCAL_TIMEOUT', { seconds: REPLAY_TIMEOUT_MS / 1000 });
    // The recording ends with the timeout first, because the abort below would otherwise count as the end.
    if (!this.#hasHead) this.#recorder.finish(this.#clock.monotonic(), fault);
    this.#request?.abort();
    this.#settle(this.#hasHead ? null : fault);
  }

  onInterim(): boolean {
    return true;
  }

  onHead(): void {
    this.#hasHead = true;
  }

  onData(_bytes: Buffer, start: number, end: number): boolean {
    this.#leftBytes -= end - start;
    return true;
  }

  passChunks(): null {
    return null;
  }

  onTrailers(): void {}

  onTurn(): boolean {
    if (this.#leftBytes < 0) this.#cut();
    return true;
  }

  onEnd(): void {
    this.#settle(null);
  }

  onUpgrade(_head: ResponseHead, stream: UpstreamStream): void {
    stream.reset(UNASKED);
    this.#settle(null);
  }

  onError(fault: Fault): void {
    this.#settle(this.#hasHead ? null : fault);
  }

  onRequestDrain(): void {}

  #settle(fault: Fault | null): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#request = null;
    if (fault === null) this.#resolve();
    else this.#reject(fault);
  }
}
