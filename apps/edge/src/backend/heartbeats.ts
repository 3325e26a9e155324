// Tells the platform every few seconds that this run of the edge lives, and says in the log when nobody answers.
import type { Heartbeat, HeartbeatAnswer } from '@tunnel/contract';
import { type Clock, type Logger, SingleFlight, type Timer } from '@tunnel/runtime';
import { LinkFailure, type PlatformLink } from './platform-link.ts';

export interface HeartbeatsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: Pick<PlatformLink, 'heartbeat' | 'isPaused'>;
  readonly everyMs: number;
  /** What is told right now. */
  readonly describe: () => Heartbeat;
  /** Called as each heartbeat is sent; gives what is called with its answer. */
  readonly onSent: () => (answer: HeartbeatAnswer) => void;
  /** It had been away. */
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

  /** The platform must have heard of this run, and we of its changes, before anything is asked. Throws while it has not. */
  async introduced(): Promise<void> {
    if (!this.#hasBeenAnswered && !this.#options.link.isPaused) await this.beat();
    if (!this.#hasBeenAnswered) throw new Error('no response from the platform yet');
  }

  beat(): Promise<void> {
    return this.#beats.run();
  }

  /** With what is to be told now: one under way may say less. */
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
    // In the stack the platform stops right after us: one under way then finds nobody.
    if (this.#state === 'away' || this.#isStopped) return;
    this.#state = 'away';
    if (error instanceof LinkFailure && error.kind === 'refused') {
      logger.error({ reason }, 'the platform rejected this edge; check the credential');
    } else logger.warn({ reason }, 'platform unreachable; known API keys and open tunnels keep working');
  }
}
