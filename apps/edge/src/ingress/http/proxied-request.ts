// One visitor's request on its way: leased to a member of its route, put to that one's service, and to the next member's while nothing has
// reached a service. Requests of one HTTP/1.1 connection follow each other, so one object serves them all.
import type { ChunkedForm, RequestHead } from '@tunnel/core';
import { RETRY_AFTER_SECS } from '@tunnel/http-shell';
import { FailedMembers, type Lease, type Refusal } from '../../routing/balancer.ts';
import type { OwnAnswer, RoutedRequest, VisitorInfo } from '../../routing/http-router.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { RequestRecorder, ResponseHandler, UnsentRequest } from '../../upstream/response-handler.ts';
import type { UpstreamRequest } from '../../upstream/upstream-request.ts';
import type { VisitorOwner } from './visitor.ts';

/** Whose lease a request goes by: that of the connection, or with HTTP/2 that of its authority. */
export interface LeaseHolder {
  leaseFor(head: RequestHead): Lease;
  /** It may have found a member, or lost it. */
  onLeased(head: RequestHead, lease: Lease): void;
}

/** The request's body on its way in. */
export interface BodySource {
  readonly form: ChunkedForm;
  /** Who gets it now. */
  taker: Pick<UpstreamRequest, 'writeBody'> | null;
}

export class ProxiedRequest {
  /** The first byte of its head has come. */
  startedMs = 0;
  readonly #owner: VisitorOwner;
  readonly #holder: LeaseHolder;
  #visitor: VisitorInfo | null = null;
  /** Of a request that came through a proxy and counts for its visitor by itself. */
  #countedAddress: string | null = null;
  // Set by begin().
  #head!: RequestHead;
  #handler!: ResponseHandler;
  #member!: Tunnel;
  #body: BodySource | null = null;
  #failed: FailedMembers | null = null;
  #recorder: RequestRecorder | null = null;
  #upstream: UpstreamRequest | null = null;

  constructor(owner: VisitorOwner, holder: LeaseHolder) {
    this.#owner = owner;
    this.#holder = holder;
  }

  /** A service has it, and its answer is not complete. */
  get isUnderWay(): boolean {
    return this.#upstream !== null;
  }

  /** The member that serves it, and counts it, or why there is none. */
  lease({ route, visitor }: RoutedRequest, head: RequestHead): Tunnel | OwnAnswer {
    const { balancer } = this.#owner;
    this.#visitor = visitor;
    const overLimit = this.#countVisitor(visitor);
    if (overLimit !== null) return overLimit;
    const lease = this.#holder.leaseFor(head);
    const unserved = balancer.acquire(lease, route);
    this.#holder.onLeased(head, lease);
    if (unserved !== null) return answerOf(unserved);
    const member = lease.member as Tunnel;
    this.#owner.countRequest(member);
    return member;
  }

  #countVisitor({ isProxy, address }: VisitorInfo): OwnAnswer | null {
    if (!isProxy) return null;
    const overLimit = this.#owner.countVisitor(address);
    if (overLimit === null) this.#countedAddress = address;
    return overLimit;
  }

  begin(member: Tunnel, head: RequestHead, handler: ResponseHandler, body: BodySource | null): void {
    this.#head = head;
    this.#handler = handler;
    this.#body = body;
    this.#failed = null;
    this.#send(member).start();
  }

  #send(member: Tunnel): UpstreamRequest {
    const { services } = this.#owner;
    const head = this.#head;
    const visitor = this.#visitor as VisitorInfo;
    const rewrite = member.http?.hostHeader ?? null;
    const bodyForm = this.#body?.form ?? 'data';
    const { group } = member;
    this.#member = member;
    this.#recorder = this.#owner.capture(member, head, this.startedMs, bodyForm);
    const upstream = services.create(
      member,
      {
        head,
        options: {
          visitorAddress: visitor.address,
          forwardedFor: visitor.forwardedFor,
          proto: visitor.scheme,
          hostHeader: rewrite === null ? 'keep' : { rewrite },
        },
        hasBody: this.#body !== null,
        bodyForm,
        hasOthers: group === null ? null : () => group.healthyCount > (group.isHealthy(member) ? 1 : 0),
        recorder: this.#recorder,
      },
      this.#handler,
    );
    this.#upstream = upstream;
    if (this.#body !== null) this.#body.taker = upstream;
    return upstream;
  }

  /** false: there is nobody else to ask. */
  retryOnNextMember({ waiting, requestDone, trailers }: UnsentRequest): boolean {
    const { balancer, services } = this.#owner;
    const nowMs = services.now();
    const failed = this.#member;
    this.#failed ??= new FailedMembers(nowMs);
    this.#failed.members.push(failed);
    const lease = this.#holder.leaseFor(this.#head);
    // A body stays among services that speak the same HTTP: what waits of it is in their form.
    const kind = this.#body === null ? 'any' : 'same-local-protocol';
    const next = balancer.retryOnNextMember(lease, this.#failed, nowMs, kind);
    this.#holder.onLeased(this.#head, lease);
    if (next === null) return false;
    failed.counters.takeBackRequest();
    next.counters.addRequest();
    this.#recorder?.discard();
    const upstream = this.#send(next);
    while (waiting !== null && waiting.length > 0) {
      const bytes = waiting.shift(waiting.length);
      upstream.writeBody(bytes, 0, bytes.length, false);
    }
    if (this.#body !== null && requestDone) upstream.endBody(trailers);
    upstream.start();
    return true;
  }

  /** The head of an answer goes out, of the service's or of our own. */
  answered(status: number): void {
    const nowMs = this.#owner.services.preciseNow();
    const wholeMs = nowMs - this.startedMs;
    // While a body is on its way the time is the visitor's.
    const serviceMs = this.#body === null ? (this.#upstream?.serviceMs(nowMs) ?? null) : null;
    this.#owner.onResponse(status, wholeMs, serviceMs === null ? null : wholeMs - serviceMs);
  }

  endBody(trailers: UnsentRequest['trailers']): void {
    this.#upstream?.endBody(trailers);
  }

  /** The visitor has taken what was written. */
  resume(): void {
    this.#upstream?.resume();
  }

  tick(nowMs: number): void {
    this.#upstream?.tick(nowMs);
  }

  /** It has become a pair of byte streams, or its answer is out; what still comes of the body goes nowhere. */
  detach(): void {
    this.#upstream = null;
    this.#body = null;
  }

  /** It is over, and counts for nobody's address any more. */
  done(): void {
    this.detach();
    const address = this.#countedAddress;
    if (address === null) return;
    this.#countedAddress = null;
    this.#owner.uncountVisitor(address);
  }

  /** Something of ours threw: the service is left, and nobody is told by it. */
  giveUp(): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    upstream?.giveUp();
  }

  /** The visitor left. */
  abort(): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    upstream?.abort();
  }
}

const answerOf = ({ reason, fault }: Refusal): OwnAnswer =>
  reason === 'no-healthy' ? { fault } : { fault, retryAfterSecs: RETRY_AFTER_SECS };
