// Traces of a server part: decides for each request whether its span is exported, creates the ids, and hands finished spans to the
// exporter.

import type { Clock } from '../clock.ts';
import type { Logger } from '../logger/logger.ts';
import { randomHex, type Secret } from '../secret.ts';
import { type AttributeValue, spanJson } from './otlp-json.rules.ts';
import { createOtlpSender } from './otlp-sender.ts';
import { SpanExporter } from './span-exporter.ts';
import { isSampled, parseTraceparent, type SamplingRules, traceparentOf } from './trace-context.rules.ts';

/** The table [telemetry] of server.toml. */
export interface TelemetrySettings {
  readonly otlp_endpoint: string;
  readonly otlp_headers: Secret;
  readonly sample_ratio: number;
  readonly trust_traceparent: boolean;
  readonly service_name: string;
}

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;

/** The span of a request, from its start to its end. */
export class Span {
  name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | null;
  /** Start of the span on the monotonic clock, and as Unix time. */
  readonly startedMs: number;
  readonly #startUnixMs: number;
  readonly #attributes = new Map<string, AttributeValue>();
  readonly #events: { readonly name: string; readonly atMs: number }[] = [];
  #error: string | null = null;
  #isOver = false;
  readonly #exporter: Pick<SpanExporter, 'add'>;

  constructor(ids: Pick<Span, 'traceId' | 'spanId' | 'parentId'>, clock: Clock, exporter: Pick<SpanExporter, 'add'>) {
    this.name = '';
    this.traceId = ids.traceId;
    this.spanId = ids.spanId;
    this.parentId = ids.parentId;
    this.startedMs = clock.monotonic();
    this.#startUnixMs = clock.now();
    this.#exporter = exporter;
  }

  /** Sets an attribute. A later value replaces an earlier value. */
  set(key: string, value: AttributeValue): void {
    this.#attributes.set(key, value);
  }

  /** Adds an event. `atMs` is the time on the monotonic clock. */
  event(name: string, atMs: number): void {
    this.#events.push({ name, atMs: this.#unixMs(atMs) });
  }

  fail(error: string): void {
    this.#error = error;
  }

  /** Ends and exports the span. Further calls have no effect. `nowMs` is the time on the monotonic clock. */
  end(nowMs: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { traceId, spanId, parentId, name } = this;
    const times = { startMs: this.#startUnixMs, endMs: this.#unixMs(Math.max(nowMs, this.startedMs)) };
    const attributes = [...this.#attributes];
    const facts = { traceId, spanId, parentId, name, ...times, attributes, events: this.#events, error: this.#error };
    this.#exporter.add(spanJson(facts));
  }

  /** A span follows the monotonic clock, so that a change of the machine's clock does not distort durations. */
  #unixMs(monotonicMs: number): number {
    return this.#startUnixMs + monotonicMs - this.startedMs;
  }
}

/** The part of a request in a trace. */
export interface StartedTrace {
  /** Value of the traceparent header for the next server, which names our span as parent. */
  readonly traceparent: string;
  /** Whether the trace was started by the caller. The caller's tracestate header then remains valid. */
  readonly isContinued: boolean;
  /** Null if the request is not sampled. */
  readonly span: Span | null;
}

export interface TracerOptions {
  readonly rules: SamplingRules;
  readonly exporter: Pick<SpanExporter, 'add' | 'stop' | 'dropped'>;
  readonly clock: Clock;
  /** Returns uniform random numbers in [0, 1). */
  readonly random: () => number;
  /** Returns random bytes as lower-case hex digits. */
  readonly randomHex: (bytes: number) => string;
}

export class Tracer {
  readonly name = 'traces';
  readonly #options: TracerOptions;

  constructor(options: TracerOptions) {
    this.#options = options;
  }

  /** Number of spans that were not delivered. */
  get dropped(): number {
    return this.#options.exporter.dropped;
  }

  /**
   * Begins the trace of a request. `given` is the caller's traceparent header, or null if there is none; an invalid value starts a new
   * trace. Returns null if the request leaves no trace: it is not sampled, and its caller has sent no header. `isTrusted`: the caller's
   * flag decides, whatever the settings.
   */
  begin(given: string | null, isTrusted = false): StartedTrace | null {
    const { rules, random, randomHex: hex, clock, exporter } = this.#options;
    const context = given === null ? null : parseTraceparent(given);
    const trustsFlag = rules.trustsFlag || isTrusted;
    const sampled = isSampled({ ...rules, trustsFlag }, context, random());
    if (given === null && !sampled) return null;
    const traceId = context?.traceId ?? hex(TRACE_ID_BYTES);
    const spanId = hex(SPAN_ID_BYTES);
    const parentId = context?.parentId ?? null;
    return {
      traceparent: traceparentOf(traceId, spanId, sampled),
      isContinued: context !== null,
      span: sampled ? new Span({ traceId, spanId, parentId }, clock, exporter) : null,
    };
  }

  async start(): Promise<void> {}

  /** Makes a last attempt to deliver the remaining spans. */
  stop(): Promise<void> {
    return this.#options.exporter.stop();
  }
}

export interface TracerDeps {
  /** The part of the server: `edge` or `platform`. */
  readonly part: string;
  readonly version: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Creates the tracer of a server part. Returns null if `[telemetry] otlp_endpoint` is empty. */
export const createTracer = (
  settings: TelemetrySettings,
  { part, version, clock, logger }: TracerDeps,
): Tracer | null => {
  const { otlp_endpoint: endpoint, otlp_headers: headers, service_name: serviceName } = settings;
  if (endpoint === '') return null;
  const send = createOtlpSender({ endpoint, headers, userAgent: `tunnel-${part}/${version}`, clock });
  const { host } = new URL(endpoint);
  const random = Math.random;
  const exporter = new SpanExporter({ source: { serviceName, version, part }, send, host, clock, logger, random });
  const rules = { ratio: settings.sample_ratio, trustsFlag: settings.trust_traceparent };
  return new Tracer({ rules, exporter, clock, random, randomHex });
};
