// Sends heartbeats of the current run to the platform every few seconds, and logs when the platform becomes unreachable.
import type { Heartbeat, HeartbeatAnswer } from '@tunnel/contract';
import { type Clock, type Logger, SingleFlight, type Timer } from '@tunnel/runtime';
import { LinkFailure, type PlatformLink } from './platform-link.ts';

export interface HeartbeatsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: Pick<PlatformLink, 'heartbeat' | 'isPaused'>;
  readonly everyMs: number;
  /** Returns the current content of a heartbeat. */
  readonly describe: () => Heartbeat;
  /** Called when a heartbeat is sent. Returns the function to call with the response. */
  readonly onSent: () => (answer: HeartbeatAnswer) => void;
  /** Called when the platform responds again after an outage. */
  readonly onBack: () => void;
}

type State = 'unknown' | 'answered' | 'away';

export class Heartbeats {
  readonly #options: HeartbeatsOptions;
  #state: State = 'unknown';
  readonly #beats = new SingleFlight(() => this.#beat());
  #ticking: Timer | undefined;
  #hasBeenAnswered = false;
  #isStopped = false;

  constructor(options: HeartbeatsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#ticking = this.#options.clock.setInterval(() => void this.beat(), this.#options.everyMs);
    void this.beat();
  }

  stop(): void {
    this.#isStopped = true;
    this.#ticking?.cancel();
  }

  /**
   * Waits until the platform has responded to a heartbeat. Before other requests, the platform must know the current run, and the edge
   * must know the latest changes. Throws if the platform has not responded.
   */
  async introduced(): Promise<void> {
    if (!this.#hasBeenAnswered && !this.#options.link.isPaused) await this.beat();
    if (!this.#hasBeenAnswered) throw new Error('no response from the platform yet');
  }

  beat(): Promise<void> {
    return this.#beats.run();
  }

  /** Sends a heartbeat with the current state. Waits for a heartbeat in progress first, because its content may be older. */
  async beatAgain(): Promise<void> {
    await this.#beats.current;
    await this.beat();
  }

  async #beat(): Promise<void> {
    const { link, describe, onSent } = this.#options;
    const onAnswer = onSent();
    try {
      onAnswer(await link.heartbeat(describe()));
      this.#answered();
    } catch (error) {
      this.#failed(error);
    }
  }

  #answered(): void {
    const wasAway = this.#state === 'away';
    this.#state = 'answered';
    this.#hasBeenAnswered = true;
    if (!wasAway) return;
    this.#options.logger.info({}, 'connection to the platform restored');
    this.#options.onBack();
  }

  #failed(error: unknown): void {
    const { logger } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    // No log line while stopping: in a stack, the platform stops right after the edge, so a heartbeat in progress can fail.
    if (this.#state === 'away' || this.#isStopped) return;
    this.#state = 'away';
    if (error instanceof LinkFailure && error.kind === 'refused') {
      logger.error({ reason }, 'the platform rejected this edge; check the credential');
    } else logger.warn({ reason }, 'platform unreachable; known API keys and open tunnels keep working');
  }
}
