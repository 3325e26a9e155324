// Interface between a visitor's connection and the HTTP ingress, for HTTP/1.1 and HTTP/2.
import type { Socket } from 'node:net';
import type { Fault } from '@tunnel/errors';
import type { AcceptedConnection } from '@tunnel/http-shell';
import type { ChunkedForm, EdgeResponse, RequestHead } from '@tunnel/http1';
import type { ByteDuplex, Guarded, ReportInternalError } from '@tunnel/mux';
import type { HeldConnection } from '@tunnel/rules/admission';
import type { ListNode } from '@tunnel/rules/collections';
import type { Tracer } from '@tunnel/runtime';
import type { HeldBodies } from '../../policy/held-bodies.ts';
import type { PolicyGate } from '../../policy/policy-gate.ts';
import type { Balancer } from '../../routing/balancer.ts';
import type { EdgeReply, RouteRequest } from '../../routing/http-router.ts';
import type { Route } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { CapturedRules } from '../../upstream/captured-rules.ts';
import type { RequestRecorder } from '../../upstream/response-handler.ts';
import type { ServiceRequests } from '../../upstream/service-requests.ts';

export interface Visitor extends HeldConnection, Guarded {
  /** Checks the timeouts of the visitor's connection. Called once a second. */
  tick(nowMs: number): void;
  /** Shuts down gracefully: an idle connection closes now, a busy connection after its responses. */
  shutDown(): void;
  /** Closes the visitor's connection immediately, even in the middle of a request. */
  close(): void;
  /** Bytes written to the visitor that the kernel has not accepted yet. */
  readonly queuedBytes: number;
  /** List node in the owner's set of active visitors. Managed by the owner. */
  amongServed: ListNode<Visitor> | null;
}

/** Visitor's end of a connection, with figures on queued and accepted bytes. */
export interface VisitorDuplex extends ByteDuplex {
  readonly queuedBytes: number;
  readonly takenBytes: number;
  /** Whether the visitor has reset the connection. While reading is paused, no event reports a reset, so the state must be queried. */
  readonly hasLostPeer: boolean;
  /** Abandons the read buffer: the bytes read last were passed to a receiver that does not report when the memory is free. */
  abandonReadBuffer(): void;
  /** Detaches the connection after end() is flushed. The visitor can still read the rest, and the edge no longer waits for it. */
  detach(): void;
  /** Releases the socket to another protocol, which reads and writes from now on. Returns null if the connection has closed already. */
  release(): Socket | null;
}

/** Receives client connections that arrived on a port for visitors. */
export interface ClientIngress {
  /** Takes over a client's socket. `first` holds the bytes already read from it, or null. */
  takeOver(socket: Socket, accepted: AcceptedConnection, first: Buffer | null): void;
}

/** Policy details of a request that passed, for captures of requests. */
export interface PassedBy {
  /** Whether the path is a login path of the edge. Such requests are not captured. */
  readonly isOfLogin: boolean;
  /** Head as sent by the visitor. Policy changes are part of the captured rules. */
  readonly visitorsHead: RequestHead;
  /** Rules that matched the request, for its capture. Created on access. */
  readonly rules: CapturedRules | null;
  readonly serviceName: string | null;
}

export interface VisitorOwner {
  readonly balancer: Balancer;
  readonly services: ServiceRequests;
  readonly route: RouteRequest;
  /** Checks requests against policies. Null on an edge without policies. */
  readonly policies: PolicyGate | null;
  readonly heldBodies: HeldBodies;
  /** Traces of requests. Null without telemetry: no request then leaves a trace, and trace headers pass unchanged. */
  readonly tracer: Tracer | null;
  readonly headTimeoutMs: number;
  /** True while the edge is shutting down. Connections then accept no further requests. */
  readonly isDraining: boolean;
  countRequest(tunnel: Tunnel): void;
  /**
   * Counts a request through a trusted proxy for its visitor's address. Returns null if counted; uncountVisitor() must then be called once.
   */
  countVisitor(address: string): EdgeReply | null;
  uncountVisitor(address: string): void;
  /**
   * Starts a capture. Returns null if the request is not captured. `bodyForm` is the form of the recorded body chunks; `policy` describes
   * the applied policy.
   */
  capture(
    tunnel: Tunnel,
    head: RequestHead,
    startedMs: number,
    bodyForm: ChunkedForm,
    policy: PassedBy | null,
  ): RequestRecorder | null;
  /**
   * Reports a request answered by the policy to every member of the route; no member received it. `rules` is null if no rule is named, and
   * the request is then not captured. Returns the request id.
   */
  onPolicyAnswered(
    route: Route,
    head: RequestHead,
    startedMs: number,
    rules: CapturedRules | null,
    response: EdgeResponse,
  ): string | undefined;
  /** Reports an error response of the edge. `recorder` is null if the request is not captured. Returns the request id. */
  onFaultAnswered(
    route: Route,
    head: RequestHead,
    startedMs: number,
    fault: Fault,
    recorder: RequestRecorder | null,
  ): string | undefined;
  /** Counts a connection closed because the edge queued more for a visitor than allowed, which is an internal error. */
  onOverrun(): void;
  onResponse(status: number, wholeMs: number, edgeMs: number | null): void;
  onClosed(visitor: Visitor): void;
  /** Receives client connections. Null if clients cannot connect through the HTTP ports. */
  readonly clients: ClientIngress | null;
  readonly report: ReportInternalError;
}
