// Tells the platform every few seconds that this run of the edge lives, and says in the log when nobody answers.
import type { Heartbeat, HeartbeatAnswer } from '@tunnel/contract';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import type { PlatformLink } from './platform-link.ts';

export interface HeartbeatsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly link: Pick<PlatformLink, 'heartbeat'>;
  readonly everyMs: number;
  /** What is told right now. */
  readonly describe: () => Heartbeat;
  /** Called as each heartbeat is sent; gives what is called with its answer. */
  readonly onSent: () => (answer: HeartbeatAnswer) => void;
}

type State = 'unknown' | 'answered' | 'away';

export class Heartbeats {
  readonly #given: HeartbeatsOptions;
  #state: State = 'unknown';
  #underWay: Promise<void> | null = null;
  #ticking: Timer | undefined;
  #hasBeenAnswered = false;

  constructor(options: HeartbeatsOptions) {
    this.#given = options;
  }

  start(): void {
    this.#ticking = this.#given.clock.setInterval(() => void this.beat(), this.#given.everyMs);
    void this.beat();
  }

  stop(): void {
    this.#ticking?.cancel();
  }

  /** The platform must have heard of this run, and we of its changes, before anything is asked. Throws while it has not. */
  async introduced(): Promise<void> {
    if (!this.#hasBeenAnswered) await this.beat();
    if (!this.#hasBeenAnswered) throw new Error('the platform has not answered yet');
  }

  beat(): Promise<void> {
    this.#underWay ??= this.#beat().finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  /** With what is to be told now: one under way may say less. */
  async beatAgain(): Promise<void> {
    await this.#underWay;
    await this.beat();
  }

  async #beat(): Promise<void> {
    const { link, describe, onSent, logger } = this.#given;
    const onAnswer = onSent();
    try {
      const answer = await link.heartbeat(describe());
      if (this.#state === 'away') logger.info({}, 'the platform is back');
      this.#state = 'answered';
      this.#hasBeenAnswered = true;
      onAnswer(answer);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (this.#state !== 'away') logger.warn({ reason }, 'the platform is away; known keys and tunnels go on');
      this.#state = 'away';
    }
  }
}
