// Drives the path machine for a direct path: holds its state and timer, and executes its effects through PathActions.
import {
  isPathUsed,
  PATH_OFF,
  type PathEvent,
  type PathReason,
  type PathState,
  pathReasonOf,
  transitionPath,
  wantsUse,
} from '@tunnel/mux';
import type { Clock, Timer } from '@tunnel/runtime';

export interface PathActions {
  /** Sends probes for a direct path to every candidate address of the other side. */
  sendProbe(): void;
  /** Sends a ping on the direct path in use. */
  sendPing(): void;
  use(): void;
  leave(): void;
  /** Called when a round starts automatically: after the pause, or after an address change. */
  retry(): void;
  /** Called when all attempts of a round to find a direct path have failed. */
  failed(): void;
  /** Called when the reason for using the relay has changed. */
  changed(): void;
  /** Called when the timer callback of the path driver threw. */
  abandon(error: unknown, where: string): void;
}

export class PathDriver {
  readonly #clock: Clock;
  readonly #actions: PathActions;
  #state: PathState = PATH_OFF;
  #timer: Timer | null = null;

  constructor(clock: Clock, actions: PathActions) {
    this.#clock = clock;
    this.#actions = actions;
  }

  get isUsed(): boolean {
    return isPathUsed(this.#state);
  }

  get reason(): PathReason {
    return pathReasonOf(this.#state);
  }

  /** True if the next use of the path must be reported with `used`. */
  get wantsUse(): boolean {
    return wantsUse(this.#state);
  }

  feed(event: PathEvent): void {
    const before = this.#state;
    const [state, effects] = transitionPath(before, event, this.#clock.monotonic());
    this.#state = state;
    if (state.kind === 'off') this.#cancel();
    for (const effect of effects) {
      if (effect.kind === 'send-probe') this.#actions.sendProbe();
      else if (effect.kind === 'send-ping') this.#actions.sendPing();
      else if (effect.kind === 'use') this.#actions.use();
      else if (effect.kind === 'leave') this.#actions.leave();
      else this.#wake(effect.at);
    }
    if (pathReasonOf(before) !== this.reason) this.#actions.changed();
    if (before.kind === 'probing' && this.#state.kind === 'down') this.#actions.failed();
    if (event.kind !== 'started' && isFreshRound(before, this.#state)) this.#actions.retry();
  }

  close(): void {
    this.#state = PATH_OFF;
    this.#cancel();
  }

  #wake(at: number): void {
    this.#cancel();
    this.#timer = this.#clock.setTimeout(
      () => {
        try {
          this.feed({ kind: 'tick' });
        } catch (error) {
          this.#actions.abandon(error, 'peer.path');
        }
      },
      Math.max(0, at - this.#clock.monotonic()),
    );
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}

const isFreshRound = (before: PathState, after: PathState): boolean =>
  after.kind === 'probing' && after.attempt === 1 && (before.kind !== 'probing' || before.triedAt !== after.triedAt);
