import { expect, it } from 'vitest';
import { batchJson, SPAN_TEXT_MAX_CHARS, type SpanFacts, spanJson } from './otlp-json.rules.ts';

interface Batch {
  readonly resourceSpans: readonly [
    {
      readonly resource: { readonly attributes: unknown };
      readonly scopeSpans: readonly [{ readonly scope: unknown; readonly spans: unknown }];
    },
  ];
}

const SPAN: SpanFacts = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parentId: null,
  name: 'GET',
  startMs: 1_900_000_000_000.25,
  endMs: 1_900_000_000_001,
  attributes: [
    ['url.path', '/a'],
    ['http.response.status_code', 200],
  ],
  events: [],
  error: null,
};

it('writes a server span with nanoseconds and 64-bit numbers as text', () => {
  expect(JSON.parse(spanJson(SPAN))).toEqual({
    traceId: SPAN.traceId,
    spanId: SPAN.spanId,
    name: 'GET',
    kind: 2,
    startTimeUnixNano: '1900000000000250000',
    endTimeUnixNano: '1900000000001000000',
    attributes: [
      { key: 'url.path', value: { stringValue: '/a' } },
      { key: 'http.response.status_code', value: { intValue: '200' } },
    ],
  });
});

it('writes parent, events and errors only if there are any', () => {
  const more = { parentId: '00f067aa0ba902b7', events: [{ name: 'wait', atMs: 5.5 }], error: 'LOCAL_TIMEOUT' };
  expect(JSON.parse(spanJson({ ...SPAN, ...more }))).toMatchObject({
    parentSpanId: '00f067aa0ba902b7',
    events: [{ name: 'wait', timeUnixNano: '5500000' }],
    status: { code: 2, message: 'LOCAL_TIMEOUT' },
  });
  expect(spanJson({ ...SPAN, error: '' })).toMatch(/"status":{"code":2}}$/);
});

it('cuts off names and values that a visitor chose too long', () => {
  const long = 'ä'.repeat(100_000);
  const text = spanJson({ ...SPAN, name: long, attributes: [['url.path', long]] });
  expect(text.length).toBeLessThan(2 * SPAN_TEXT_MAX_CHARS + 500);
  expect(text).toContain(`{"stringValue":"${'ä'.repeat(SPAN_TEXT_MAX_CHARS)}"}`);
});

it('joins spans into one request with the names of the service and of its part', () => {
  const source = { serviceName: 'shop "eu"', version: '1.2.3', part: 'edge' };
  const { resourceSpans } = JSON.parse(batchJson(source, [spanJson(SPAN), spanJson(SPAN)])) as Batch;
  expect(resourceSpans).toHaveLength(1);
  expect(resourceSpans[0].resource.attributes).toEqual([
    { key: 'service.name', value: { stringValue: 'shop "eu"' } },
    { key: 'service.version', value: { stringValue: '1.2.3' } },
  ]);
  expect(resourceSpans[0].scopeSpans[0].scope).toEqual({ name: 'tunnel-edge', version: '1.2.3' });
  expect(resourceSpans[0].scopeSpans[0].spans).toHaveLength(2);
});
