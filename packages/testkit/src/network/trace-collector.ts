// A collector of traces for tests: records the spans that it accepts, or behaves as badly as a test wants.

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Behavior towards a batch. A number answers with this status. `hang` never answers, `drip` sends a byte of the head per second, `reset`
 * closes the connection, `huge` answers with an endless body, `never-read` does not even read the request.
 */
export type CollectorMode = 'accept' | number | 'hang' | 'drip' | 'reset' | 'huge' | 'never-read';

/** A span as received, with attributes as plain values. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly events: readonly string[];
  readonly status?: { readonly code: number; readonly message?: string };
  /** Name of the instrumentation scope. */
  readonly scope: string;
}

export interface TraceCollector {
  /** Value for `[telemetry] otlp_endpoint`. */
  readonly url: string;
  mode: CollectorMode;
  /** Number of batches that have begun to arrive, in any mode. */
  readonly batches: number;
  /** Spans of accepted batches. */
  readonly spans: readonly CollectedSpan[];
  /** Method, path and headers of the last request. */
  readonly last: { readonly line: string; readonly headers: IncomingHttpHeaders } | null;
  close(): Promise<void>;
}

export const startTraceCollector = async (): Promise<TraceCollector> => {
  const spans: CollectedSpan[] = [];
  const timers = new Set<NodeJS.Timeout>();
  const state: { mode: CollectorMode; batches: number; last: TraceCollector['last'] } = {
    mode: 'accept',
    batches: 0,
    last: null,
  };
  const server = createServer((request, response) => {
    state.batches += 1;
    state.last = { line: `${request.method} ${request.url}`, headers: request.headers };
    request.on('error', () => {});
    response.on('error', () => {});
    const { mode } = state;
    if (mode === 'never-read') request.socket.pause();
    else void receive(request).then((text) => answer(mode, text, response));
  });
  const answer = (mode: CollectorMode, text: string, response: ServerResponse): void => {
    if (mode === 'accept') {
      spans.push(...spansIn(text));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}');
    } else if (typeof mode === 'number') response.writeHead(mode).end();
    else if (mode === 'reset') response.socket?.resetAndDestroy();
    else if (mode === 'drip') drip(response);
    else if (mode === 'huge') pour(response);
  };
  const drip = ({ socket }: ServerResponse): void => {
    const timer = setInterval(() => socket?.write('H'), 1000);
    timers.add(timer);
    socket?.on('close', () => clearInterval(timer));
  };
  server.listen(0, '127.0.0.1');
  await new Promise<void>((resolve) => server.once('listening', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get mode() {
      return state.mode;
    },
    set mode(mode) {
      state.mode = mode;
    },
    get batches() {
      return state.batches;
    },
    get last() {
      return state.last;
    },
    spans,
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
};

const receive = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return '';
  }
  return Buffer.concat(chunks).toString();
};

const pour = (response: ServerResponse): void => {
  const piece = Buffer.alloc(64 * 1024, '{');
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
    if (!response.destroyed) response.once('drain', more);
  };
  response.writeHead(200);
  more();
};

interface Encoded {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans: readonly EncodedSpan[];
    }[];
  }[];
}

interface EncodedSpan extends Omit<CollectedSpan, 'attributes' | 'events' | 'scope'> {
  readonly attributes: readonly {
    readonly key: string;
    readonly value: { readonly stringValue?: string; readonly intValue?: string };
  }[];
  readonly events?: readonly { readonly name: string }[];
}

const spansIn = (text: string): CollectedSpan[] =>
  (JSON.parse(text) as Encoded).resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map((span) => ({
        ...span,
        attributes: Object.fromEntries(
          span.attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? '']),
        ),
        events: (span.events ?? []).map(({ name }) => name),
        scope: scope.name,
      })),
    ),
  );
