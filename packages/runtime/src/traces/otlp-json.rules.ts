// Spans as text for the collector: OTLP in its JSON form. A span becomes text when its request ends, so that a waiting span holds neither
// the request's head nor any other memory of the connection.

/** Maximum length of a name or value in a span. Longer texts are cut off, because visitors choose paths and methods. */
export const SPAN_TEXT_MAX_CHARS = 1024;

export type AttributeValue = string | number;

export interface SpanFacts {
  readonly traceId: string;
  readonly spanId: string;
  /** Span of the caller. Null for the first span of a trace. */
  readonly parentId: string | null;
  readonly name: string;
  /** Unix time in milliseconds, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: readonly (readonly [key: string, value: AttributeValue])[];
  readonly events: readonly { readonly name: string; readonly atMs: number }[];
  /** Why the request failed, or an empty text if the reason is unknown. Null if the request did not fail. */
  readonly error: string | null;
}

const SERVER = 2;
const ERROR = 2;

export const spanJson = ({ traceId, spanId, parentId, name, startMs, endMs, ...rest }: SpanFacts): string =>
  JSON.stringify({
    traceId,
    spanId,
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    name: cut(name),
    kind: SERVER,
    startTimeUnixNano: nanosOf(startMs),
    endTimeUnixNano: nanosOf(endMs),
    attributes: rest.attributes.map(attribute),
    ...(rest.events.length === 0 ? {} : { events: rest.events.map(event) }),
    ...(rest.error === null ? {} : { status: failure(rest.error) }),
  });

const failure = (error: string): object => ({ code: ERROR, ...(error === '' ? {} : { message: cut(error) }) });

const attribute = ([key, value]: SpanFacts['attributes'][number]): object => ({ key, value: attributeValue(value) });

/** The JSON form of OTLP writes 64-bit numbers as text. */
const attributeValue = (value: AttributeValue): object =>
  typeof value === 'number' ? { intValue: String(value) } : { stringValue: cut(value) };

const event = ({ name, atMs }: SpanFacts['events'][number]): object => ({ timeUnixNano: nanosOf(atMs), name });

const cut = (text: string): string => text.slice(0, SPAN_TEXT_MAX_CHARS);

/** Nanoseconds as text, because the number is too large for a double. */
const nanosOf = (ms: number): string => {
  const wholeMs = Math.floor(ms);
  return `${wholeMs}${String(Math.floor((ms - wholeMs) * 1e6)).padStart(6, '0')}`;
};

export interface SpanSource {
  /** The name under which the collector shows the spans. */
  readonly serviceName: string;
  readonly version: string;
  /** The part of the server that makes the spans. */
  readonly part: string;
}

/** Renders a request to the collector. `spans` are texts made by spanJson. */
export const batchJson = ({ serviceName, version, part }: SpanSource, spans: readonly string[]): string => {
  const resource = { attributes: [attribute(['service.name', serviceName]), attribute(['service.version', version])] };
  const scope = { name: `tunnel-${part}`, version };
  return `{"resourceSpans":[{"resource":${JSON.stringify(resource)},"scopeSpans":[{"scope":${JSON.stringify(scope)},"spans":[${spans.join(',')}]}]}]}`;
};
