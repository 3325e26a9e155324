// Spans of requests to the platform: begun when a request arrives, named by its route, and ended with its response.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Span, Tracer } from '@tunnel/runtime';
import type { RequestSource } from '../shared/trusted-edge-header.ts';

const SERVER_ERRORS_FROM = 500;

export interface RequestSpansOptions {
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** Returns the source of a request. The sampling decision of the edge in front applies to the platform, too. */
  readonly sourceOf: (request: IncomingMessage) => RequestSource;
}

export class RequestSpans {
  readonly #options: RequestSpansOptions;
  /** Spans of the sampled requests in progress. */
  readonly #spans = new WeakMap<IncomingMessage, Span>();

  constructor(options: RequestSpansOptions) {
    this.#options = options;
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    const { tracer, clock, sourceOf } = this.#options;
    const { method = '', headers } = request;
    const given = headers['traceparent'];
    // A repeated header arrives as a list and is as invalid as any other malformed value.
    const span = tracer.begin(given === undefined ? null : String(given), isOfEdge(given, request, sourceOf))?.span;
    if (span == null) return;
    span.name = method;
    span.set('http.request.method', method);
    this.#spans.set(request, span);
    response.once('close', () => {
      if (response.headersSent) span.set('http.response.status_code', response.statusCode);
      if (response.headersSent && response.statusCode >= SERVER_ERRORS_FROM) span.fail('');
      span.end(clock.monotonic());
    });
  }

  /** Names the span after the route, for example `/keys/:id`. The path itself can contain ids and tokens. */
  routed(request: IncomingMessage, route: string): void {
    const span = this.#spans.get(request);
    if (span === undefined) return;
    span.name = `${request.method ?? ''} ${route}`;
    span.set('http.route', route);
  }
}

const isOfEdge = (given: unknown, request: IncomingMessage, sourceOf: RequestSpansOptions['sourceOf']): boolean =>
  given !== undefined && sourceOf(request).visitor !== null;
