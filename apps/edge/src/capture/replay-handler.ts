// Waits for the response to a replay, within a time and a size. The request writes it into the capture; nobody else wants it.
import type { ResponseHead } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { ResponseHandler } from '../upstream/response-handler.ts';
import type { UpstreamRequest } from '../upstream/upstream-request.ts';
import type { CaptureRecorder } from './recorder.ts';

const UNASKED: StreamReason = { code: 'cancelled', text: 'a replay does not switch protocols' };

export class ReplayHandler implements ResponseHandler {
  /** Settles with the end of the response, or its cut; rejects with a fault when there was none at all. */
  readonly done: Promise<void>;
  readonly #recorder: CaptureRecorder;
  readonly #clock: Clock;
  #request: UpstreamRequest | null = null;
  #timer: Timer | null = null;
  #hasHead = false;
  #leftBytes: number = EDGE_LIMITS.REPLAY_RESPONSE_MAX_BYTES;
  #resolve: () => void = () => {};
  #reject: (fault: Fault) => void = () => {};

  constructor(recorder: CaptureRecorder, clock: Clock) {
    this.#recorder = recorder;
    this.#clock = clock;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // It may fail before anyone awaits it.
    this.done.catch(() => {});
  }

  begin(request: UpstreamRequest): void {
    this.#request = request;
    this.#timer = this.#clock.setTimeout(() => this.#cut(), EDGE_LIMITS.REPLAY_TIMEOUT_MS);
  }

  #cut(): void {
    const fault = new Fault('LOCAL_TIMEOUT', { seconds: EDGE_LIMITS.REPLAY_TIMEOUT_MS / 1000 });
    // Before the abort, which would be the end that counts.
    if (!this.#hasHead) this.#recorder.finish(this.#clock.monotonic(), fault);
    this.#request?.abort();
    this.#settle(this.#hasHead ? null : fault);
  }

  onInterim(): void {}

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

  onTurn(): void {
    if (this.#leftBytes < 0) this.#cut();
  }

  onEnd(): void {
    this.#settle(null);
  }

  onUpgrade(_head: ResponseHead, stream: MuxStream): void {
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
