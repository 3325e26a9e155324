// Where a request goes, while that is not known yet: it is told once, be it by the router or because the time is over.
import { Fault } from '@tunnel/errors';
import type { Guarded } from '@tunnel/mux';
import { EDGE_LIMITS } from '../../limits.ts';
import type { RouteDecision } from '../../routing/http-router.ts';

export interface DecisionTaker extends Guarded {
  onDecided(decision: RouteDecision): void;
}

export class PendingDecision {
  readonly #taker: DecisionTaker;
  readonly #deadlineMs: number;
  #isOver = false;

  constructor(decision: Promise<RouteDecision>, taker: DecisionTaker, nowMs: number) {
    this.#taker = taker;
    this.#deadlineMs = nowMs + EDGE_LIMITS.HTTP_ROUTE_TIMEOUT_MS;
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
    const fault = new Fault('HTTP_ROUTE_TIMEOUT', { seconds: EDGE_LIMITS.HTTP_ROUTE_TIMEOUT_MS / 1000 });
    this.#tell({ fault, retryAfterSecs: 1 });
  }

  /** The visitor has left: nobody is told. */
  cancel(): void {
    this.#isOver = true;
  }

  #tell(decision: RouteDecision): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#taker.onDecided(decision);
  }
}
