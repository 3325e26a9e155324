// Visitors that were accepted over a limit: each may ask once, reads why it is not served, and is closed. The gate bounds how many, and how long.

import { type AcceptedConnection, RETRY_AFTER_SECS } from '@tunnel/http-shell';
import type { RequestHead } from '@tunnel/http1';
import { type OwnAnswer, type RouteDecision, TO_CONTROL, type VisitorInfo } from '../../routing/http-router.ts';
import type { Visitor, VisitorOwner } from './visitor.ts';

/** What a refused connection's visitor is given in the place of the ingress. */
class RefusingOwner implements VisitorOwner {
  /** No further request is read. */
  readonly isDraining = true;
  /** It is answered before any rule. */
  readonly policies = null;
  readonly #ingress: VisitorOwner;
  readonly #answer: OwnAnswer;
  readonly #visitors: Set<Visitor>;

  constructor(ingress: VisitorOwner, answer: OwnAnswer, visitors: Set<Visitor>) {
    this.#ingress = ingress;
    this.#answer = answer;
    this.#visitors = visitors;
  }

  get balancer(): VisitorOwner['balancer'] {
    return this.#ingress.balancer;
  }

  get services(): VisitorOwner['services'] {
    return this.#ingress.services;
  }

  get heldBodies(): VisitorOwner['heldBodies'] {
    return this.#ingress.heldBodies;
  }

  get headTimeoutMs(): number {
    return this.#ingress.headTimeoutMs;
  }

  get report(): VisitorOwner['report'] {
    return this.#ingress.report;
  }

  get clients(): VisitorOwner['clients'] {
    return this.#ingress.clients;
  }

  /** The limits of visitors are not those of clients, who have their own. */
  readonly route = (connection: VisitorInfo, head: RequestHead): RouteDecision =>
    this.#ingress.route(connection, head) === TO_CONTROL ? TO_CONTROL : this.#answer;

  onResponse(status: number, wholeMs: number, edgeMs: number | null): void {
    this.#ingress.onResponse(status, wholeMs, edgeMs);
  }

  onOverrun(): void {
    this.#ingress.onOverrun();
  }

  onClosed(visitor: Visitor): void {
    this.#visitors.delete(visitor);
  }

  // Nothing of it is given to a tunnel.
  countRequest(): void {}

  onPolicyAnswered(): undefined {}

  onFaultAnswered(): undefined {}

  countVisitor(): OwnAnswer {
    return this.#answer;
  }

  uncountVisitor(): void {}

  capture(): null {
    return null;
  }
}

export class RefusedVisitors {
  readonly #ingress: VisitorOwner;
  readonly #visitors = new Set<Visitor>();

  constructor(ingress: VisitorOwner) {
    this.#ingress = ingress;
  }

  add(accepted: AcceptedConnection, make: (owner: VisitorOwner) => Visitor & { start(): void }): void {
    if (accepted.refusal === null) return;
    const answer = { fault: accepted.refusal, retryAfterSecs: RETRY_AFTER_SECS };
    const visitor = make(new RefusingOwner(this.#ingress, answer, this.#visitors));
    accepted.served = visitor;
    this.#visitors.add(visitor);
    visitor.start();
  }

  tick(nowMs: number): void {
    for (const visitor of this.#visitors) {
      try {
        visitor.tick(nowMs);
      } catch (error) {
        visitor.abandon(error, 'visitor.tick');
      }
    }
  }

  close(): void {
    for (const visitor of [...this.#visitors]) visitor.close();
  }
}
