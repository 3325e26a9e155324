// Visitors accepted over a limit. Each visitor can send a single request, gets an error response with the reason, and is disconnected. The
// connection gate limits their number and time.

import { type AcceptedConnection, RETRY_AFTER_SECS } from '@tunnel/http-shell';
import type { RequestHead } from '@tunnel/http1';
import { type EdgeReply, type RouteDecision, TO_CONTROL, type VisitorInfo } from '../../routing/http-router.ts';
import type { Visitor, VisitorOwner } from './visitor.ts';

/** Owner of the connection of a refused visitor, in place of the HTTP ingress. */
class RefusingOwner implements VisitorOwner {
  /** Prevents further requests on the refused visitor's connection. */
  readonly isDraining = true;
  /** Requests of refused visitors are answered before any policy applies. */
  readonly policies = null;
  /** Refused visitors leave no trace, so that a flood of connections is not a flood of spans. */
  readonly tracer = null;
  readonly #ingress: VisitorOwner;
  readonly #answer: EdgeReply;
  readonly #visitors: Set<Visitor>;

  constructor(ingress: VisitorOwner, answer: EdgeReply, visitors: Set<Visitor>) {
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

  /** Clients have limits of their kind, so a client's connection is let through to the control plane. */
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

  // No tunnel receives any request of a refused visitor, so the following methods do nothing.
  countRequest(): void {}

  onPolicyAnswered(): undefined {}

  onFaultAnswered(): undefined {}

  countVisitor(): EdgeReply {
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
