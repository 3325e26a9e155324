// A routing and policy decision that is not available yet. The taker is notified exactly once: with the decision, or with a timeout error.
import { Fault } from '@tunnel/errors';
import type { Guarded } from '@tunnel/mux';
import type { RouteDecision } from '../../routing/http-router.ts';

export interface DecisionTaker extends Guarded {
  onDecided(decision: RouteDecision): void;
}

export class PendingDecision {
  readonly #taker: DecisionTaker;
  readonly #timeoutMs: number;
  readonly #deadlineMs: number;
  #isOver = false;

  constructor(decision: Promise<RouteDecision>, taker: DecisionTaker, nowMs: number, timeoutMs: number) {
    this.#taker = taker;
    this.#timeoutMs = timeoutMs;
    this.#deadlineMs = nowMs + timeoutMs;
    const decided = (made: RouteDecision): void => {
      try {
        this.#tell(made);
      } catch (error) {
        taker.abandon(error, 'visitor.decided');
      }
    };
    decision.then(decided, (error: unknown) => decided({ fault: Fault.from(error) }));
  }

  tick(nowMs: number): void {
    if (nowMs < this.#deadlineMs) return;
    const fault = new Fault('HTTP_ROUTE_TIMEOUT', { seconds: this.#timeoutMs / 1000 });
    this.#tell({ fault, retryAfterSecs: 1 });
  }

  /** Cancels the report of the decision, because the visitor has disconnected. */
  cancel(): void {
    this.#isOver = true;
  }

  #tell(decision: RouteDecision): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#taker.onDecided(decision);
  }
}
