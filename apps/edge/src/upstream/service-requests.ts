// Creates all requests to local services, in the HTTP version of each service, over kept and shared connections.
import type { ReportInternalError } from '@tunnel/mux';
import { type Clock, readOncePerTurn } from '@tunnel/runtime';
import { H2cConnections } from './h2c/h2c-connections.ts';
import { H2cUpstream } from './h2c/h2c-upstream.ts';
import { Http1Upstream } from './http1/http1-upstream.ts';
import { IdleStreams } from './http1/idle-streams.ts';
import type { ResponseHandler } from './response-handler.ts';
import type { Service, ServiceRequest, UpstreamContext, UpstreamRequest } from './upstream-request.ts';

/** Bytes of all streams to services since the start. */
export interface ByteTotals {
  bytesToClient: number;
  bytesToVisitor: number;
}

export interface ServiceRequestsOptions {
  readonly clock: Clock;
  readonly firstByteTimeoutMs: number;
  readonly totals: ByteTotals;
  readonly report: ReportInternalError;
}

export class ServiceRequests implements UpstreamContext {
  readonly firstByteTimeoutMs: number;
  readonly now: () => number;
  readonly preciseNow: () => number;
  readonly report: ReportInternalError;
  readonly #totals: ByteTotals;
  readonly #idle: IdleStreams;
  readonly #h2c: H2cConnections;

  constructor({ clock, firstByteTimeoutMs, totals, report }: ServiceRequestsOptions) {
    this.report = report;
    this.#idle = new IdleStreams(report);
    this.now = readOncePerTurn(clock);
    this.preciseNow = () => clock.monotonic();
    this.#totals = totals;
    this.firstByteTimeoutMs = firstByteTimeoutMs;
    this.#h2c = new H2cConnections(this);
  }

  /** Creates a request to a tunnel's service without starting it. */
  create(service: Service, request: ServiceRequest, handler: ResponseHandler): UpstreamRequest {
    return service.http?.localProtocol === 'h2c'
      ? new H2cUpstream(this.#h2c, this, service, request, handler)
      : new Http1Upstream(this.#idle, this, service, request, handler);
  }

  onBytes(toClient: number, toVisitor: number): void {
    this.#totals.bytesToClient += toClient;
    this.#totals.bytesToVisitor += toVisitor;
  }

  /** Closes idle connections to services. Called once a second. */
  sweep(nowMs: number, isListed: (service: Service) => boolean): void {
    this.#idle.sweep(nowMs, isListed);
    this.#h2c.sweep(nowMs);
  }

  close(): void {
    this.#idle.close();
    this.#h2c.close();
  }
}
