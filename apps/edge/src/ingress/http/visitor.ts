// What a visitor's connection and the ingress are to each other, whichever version of HTTP is spoken.
import type { Socket } from 'node:net';
import type { Fault } from '@tunnel/errors';
import type { AcceptedConnection } from '@tunnel/http-shell';
import type { ChunkedForm, OwnResponse, RequestHead } from '@tunnel/http1';
import type { ByteDuplex, Guarded, ReportInternalError } from '@tunnel/mux';
import type { HeldConnection } from '@tunnel/rules/admission';
import type { ListNode } from '@tunnel/rules/collections';
import type { HeldBodies } from '../../policy/held-bodies.ts';
import type { PolicyGate } from '../../policy/policy-gate.ts';
import type { Balancer } from '../../routing/balancer.ts';
import type { OwnAnswer, RouteRequest } from '../../routing/http-router.ts';
import type { Route } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { CapturedRules } from '../../upstream/captured-rules.ts';
import type { RequestRecorder } from '../../upstream/response-handler.ts';
import type { ServiceRequests } from '../../upstream/service-requests.ts';

export interface Visitor extends HeldConnection, Guarded {
  /** Once a second. */
  tick(nowMs: number): void;
  /** The edge is shutting down: what is idle ends now, what is busy after its responses. */
  shutDown(): void;
  /** Cuts the connection off, whatever it is doing. */
  close(): void;
  /** What was written to it and the kernel has not taken. */
  readonly queuedBytes: number;
  /** Its place among those that are served: its owner's. */
  amongServed: ListNode<Visitor> | null;
}

/** A visitor's end of its connection: what waits to be taken, and how far it has come. */
export interface VisitorDuplex extends ByteDuplex {
  readonly queuedBytes: number;
  readonly takenBytes: number;
  /** The visitor has reset the connection; while it is not read nobody else tells. */
  readonly hasLostPeer: boolean;
  /** What was read last was given to somebody who will not say when it is free. */
  leaveMemory(): void;
  /** After end(), when all of it is out: the visitor may read on, and nobody waits for it. */
  letGo(): void;
  /** Another protocol begins, and somebody else reads and writes; null: it is over already. */
  release(): Socket | null;
}

/** Where connections go that came in by a port of visitors and are clients'. */
export interface ClientIngress {
  /** `first`: what was read of it already; null: nothing. */
  takeOver(socket: Socket, accepted: AcceptedConnection, first: Buffer | null): void;
}

/** The rules that let a request pass, as captures see them. */
export interface PassedBy {
  /** A path of the edge itself: nobody looks at it. */
  readonly isOfLogin: boolean;
  /** As it came; what they changed of it is among the captured. */
  readonly visitorsHead: RequestHead;
  /** Made when it is asked for. */
  readonly rules: CapturedRules | null;
  readonly serviceName: string | null;
}

export interface VisitorOwner {
  readonly balancer: Balancer;
  readonly services: ServiceRequests;
  readonly route: RouteRequest;
  /** null: nobody has rules here. */
  readonly policies: PolicyGate | null;
  readonly heldBodies: HeldBodies;
  readonly headTimeoutMs: number;
  /** No further request on any connection: the edge is shutting down. */
  readonly isDraining: boolean;
  countRequest(tunnel: Tunnel): void;
  /** A request through a trusted proxy counts for its visitor's address. null: it does, and one uncountVisitor() is owed. */
  countVisitor(address: string): OwnAnswer | null;
  uncountVisitor(address: string): void;
  /** A request begins; null: it is not captured. A chunked body will pass by in that form. `policy`: what its rules did. */
  capture(
    tunnel: Tunnel,
    head: RequestHead,
    startedMs: number,
    bodyForm: ChunkedForm,
    policy: PassedBy | null,
  ): RequestRecorder | null;
  /** Its policy has answered it: no member had it, and each of them shows it. `rules` null: no rule is to be named, and it is not captured. Returns the id of the request. */
  onPolicyAnswered(
    route: Route,
    head: RequestHead,
    startedMs: number,
    rules: CapturedRules | null,
    response: OwnResponse,
  ): string | undefined;
  /** The edge answers it with an error. `recorder` null: it is not captured. Returns the id of the request. */
  onFaultAnswered(
    route: Route,
    head: RequestHead,
    startedMs: number,
    fault: Fault,
    recorder: RequestRecorder | null,
  ): string | undefined;
  /** More was queued for a visitor than its source may: a mistake of ours, which costs this connection. */
  onOverrun(): void;
  onResponse(status: number, wholeMs: number, edgeMs: number | null): void;
  onClosed(visitor: Visitor): void;
  /** null: clients have another way in. */
  readonly clients: ClientIngress | null;
  readonly report: ReportInternalError;
}
