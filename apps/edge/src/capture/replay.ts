// Sends a captured request to the local service once more, and captures that in turn.
import { parseRequestHead, type RequestHead } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { ServiceRequests } from '../upstream/service-requests.ts';
import type { CaptureStore } from './capture-store.ts';
import type { CaptureRecorder } from './recorder.ts';
import { ReplayHandler } from './replay-handler.ts';
import { headLines, whyNotReplayable } from './stored-head.ts';

export interface ReplayContext {
  readonly store: CaptureStore;
  readonly clock: Clock;
  readonly http: { readonly services: ServiceRequests; countRequest(tunnel: Tunnel): void };
}

export interface ReplayOrder {
  /** undefined: it has ended. */
  readonly tunnel: Tunnel | undefined;
  readonly original: CaptureRecorder;
  /** Of whoever asks for it: the visitor of this request. */
  readonly visitorAddress: string;
}

export class Replays {
  readonly #context: ReplayContext;
  #underWay = 0;

  constructor(context: ReplayContext) {
    this.#context = context;
  }

  /** The new capture, finished; a fault when there was no response. */
  async replay({ tunnel, original, visitorAddress }: ReplayOrder): Promise<CaptureRecorder> {
    const { store, clock } = this.#context;
    const reason =
      tunnel === undefined ? 'its tunnel has ended' : whyNotReplayable(original, headLines(original.requestText));
    if (tunnel === undefined || reason !== null) throw refusal(reason ?? '');
    if (this.#underWay >= EDGE_LIMITS.REPLAYS_AT_ONCE) {
      throw new Fault('CAPTURE_REPLAYS_BUSY', {
        limit: EDGE_LIMITS.REPLAYS_AT_ONCE,
        seconds: EDGE_LIMITS.REPLAY_TIMEOUT_MS / 1000,
      });
    }
    const body = Buffer.from(original.requestBody?.kept ?? '', 'latin1');
    const head = headAgain(original.requestText, body.length);
    const recorder = store.begin(tunnel, head, clock.monotonic(), 'data', original);
    if (recorder === null) throw refusal('captures are off for its tunnel');
    this.#underWay += 1;
    try {
      await this.#send(tunnel, { head, body, visitorAddress }, recorder);
    } finally {
      this.#underWay -= 1;
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
    const handler = new ReplayHandler(recorder, clock);
    const request = http.services.create(
      tunnel,
      {
        head,
        options: {
          visitorAddress,
          proto: tunnel.publicUrl.startsWith('https:') ? 'https' : 'http',
          hostHeader: hostHeader === null ? 'keep' : { rewrite: hostHeader },
        },
        hasBody: body.length > 0,
        bodyForm: 'data',
        // It is this service's, or nobody's.
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

const refusal = (reason: string): Fault => new Fault('CAPTURE_NOT_REPLAYABLE', { reason });

/** The same request without what belonged to the visitor's connection, and with the length that its body turned out to have. */
const headAgain = (text: string, bodyBytes: number): RequestHead => {
  const head = parseRequestHead(text);
  if (head.kind === 'problem') throw refusal(head.reason);
  return {
    ...head,
    // As from a visitor that knows neither 100 (Continue) nor trailers: nobody is there to wait for them.
    version: '1.0',
    connectionNames: [...(head.connectionNames ?? []), 'trailer'],
    framing: head.framing.kind === 'none' ? head.framing : { kind: 'length', length: bodyBytes },
    upgrade: null,
  };
};
