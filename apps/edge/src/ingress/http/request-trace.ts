// Trace of a visitor's request: the edge's span, and the traceparent header for the local service. Exists only with telemetry, and only for
// requests that are sampled or have a traceparent header.

import type { Fault } from '@tunnel/errors';
import type { RequestHead, ServiceTrace } from '@tunnel/http1';
import type { Span, StartedTrace, Tracer } from '@tunnel/runtime';
import type { VisitorInfo } from '../../routing/http-router.ts';
import { isGroup, type Route } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';

const TRACEPARENT = 'traceparent';
/** Value of a header that is repeated, which is as invalid as any other malformed value. */
const INVALID = '';

/**
 * Headers that the edge replaces, whether a visitor or a rule of the tunnel has set them. The tracestate header belongs to the visitor's
 * trace, so a new trace begins without it.
 */
const PARENT: readonly string[] = [TRACEPARENT];
const PARENT_AND_STATE: readonly string[] = [TRACEPARENT, 'tracestate'];

/**
 * Methods that spans name. Visitors can invent methods, which therefore share a name: the number of different names decides the price of
 * many tracing systems.
 */
const METHODS: ReadonlySet<string> = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '));
const OTHER = { name: 'HTTP', method: '_OTHER' };

/** Status at which an upgraded request has its whole response. The bytes that follow belong to another protocol. */
const SWITCHING_PROTOCOLS = 101;
const SERVER_ERRORS_FROM = 500;

/** Begins the trace of a request. Returns null if the request leaves no trace. */
export const beginTrace = (tracer: Tracer, head: RequestHead, connection: VisitorInfo): RequestTrace | null => {
  const given = givenTraceparent(head);
  const started = tracer.begin(given);
  return started === null ? null : new RequestTrace(started, head, connection);
};

const givenTraceparent = ({ headers }: RequestHead): string | null => {
  let given: string | null = null;
  for (const field of headers) {
    if (field.nameLength !== TRACEPARENT.length || field.lower !== TRACEPARENT) continue;
    given = given === null ? field.value : INVALID;
  }
  return given;
};

export class RequestTrace {
  /** The edge's place in the trace, for the head that the local service receives. */
  readonly forService: ServiceTrace;
  readonly #span: Span | null;
  /** Error code of a response made by the edge. Null for a response of the service. */
  #code: string | null = null;

  constructor(
    { traceparent, isContinued, span }: StartedTrace,
    { method, path }: RequestHead,
    { address }: VisitorInfo,
  ) {
    this.forService = { traceparent, replaced: isContinued ? PARENT : PARENT_AND_STATE };
    this.#span = span;
    if (span === null) return;
    const isKnown = METHODS.has(method);
    span.name = isKnown ? method : OTHER.name;
    span.set('http.request.method', isKnown ? method : OTHER.method);
    span.set('url.path', withoutQuery(path));
    span.set('client.address', address);
  }

  /** Called when the tunnel or group of the request is known. `address` is the visitor's, also behind a trusted proxy. */
  routed(route: Route, { address }: VisitorInfo): void {
    const span = this.#span;
    if (span === null) return;
    span.set('client.address', address);
    span.set('tunnel.label', route.label);
    if (!isGroup(route)) span.set('tunnel.id', route.tunnelId);
  }

  /** Called when the request is sent to a member. A retry on the next member stays in the same span. */
  sentTo({ tunnelId }: Tunnel): void {
    this.#span?.set('tunnel.id', tunnelId);
  }

  /** Called when a rule has answered the request. `rule` is the rule as shown to the tunnel's owner. */
  ruled(rule: string | null): void {
    if (rule !== null) this.#span?.set('tunnel.policy.rule', rule);
  }

  /** Called when the edge is about to answer with an error. */
  failed({ code }: Fault): void {
    this.#code = code;
  }

  /** Called when the response's head is sent. `waitedMs` is the time spent on the local service. Null if no service was involved. */
  answered(status: number, nowMs: number, waitedMs: number | null): void {
    const span = this.#span;
    if (span === null) return;
    span.set('http.response.status_code', status);
    if (waitedMs !== null) span.event('tunnel.service.wait', nowMs - waitedMs);
    if (waitedMs !== null && this.#code === null) span.event('tunnel.service.response', nowMs);
    if (status >= SERVER_ERRORS_FROM) span.fail(this.#code ?? '');
    if (status === SWITCHING_PROTOCOLS) span.end(nowMs);
  }

  /** Called when the response breaks off in the middle, which no status tells. */
  brokenOff({ code }: Fault): void {
    this.#span?.fail(code);
  }

  /** Called when the request has ended, completely or not. */
  end(nowMs: number): void {
    this.#span?.end(nowMs);
  }
}

/** A query can contain tokens, so it is never part of a span. */
const withoutQuery = (path: string): string => path.split('?', 1)[0] ?? '';
