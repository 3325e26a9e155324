// Spans of requests to the platform over real sockets: names, attributes, and the decision of the edge in front.
import { createLogger, createTracer, Secret, systemClock } from '@tunnel/runtime';
import { startTraceCollector } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { createRequestSource } from '../shared/trusted-edge-header.ts';
import { openGate } from './gate.fixture.ts';
import { HttpServer } from './http-server.ts';
import { createPlatformApp } from './platform-app.ts';
import { RequestSpans } from './request-spans.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const logger = createLogger({ level: 'silent', format: 'json' });
const settings = { trusted_proxies: [], public_url: 'http://localhost:8080', host: '127.0.0.1' };
const edgeSecret = new Secret('of-the-edge');
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const GIVEN = `00-${TRACE}-${PARENT}-01`;

const start = async (ratio: number) => {
  const collector = await startTraceCollector();
  const clock = systemClock;
  const telemetry = {
    otlp_endpoint: collector.url,
    otlp_headers: new Secret(''),
    sample_ratio: ratio,
    trust_traceparent: false,
    service_name: 'tunnel',
  };
  const tracer = createTracer(telemetry, { part: 'platform', version: '1.2.3', clock, logger });
  if (tracer === null) throw new Error('there is an endpoint');
  const spans = new RequestSpans({ tracer, clock, sourceOf: createRequestSource({ settings, edgeSecret }) });
  const app = createPlatformApp({ logger, settings, edgeSecret, spans });
  app.get('/keys/:id', (context) => context.text('a key'));
  app.get('/broken', () => {
    throw new Error('a bug');
  });
  const server = new HttpServer({ host: '127.0.0.1', port: 0, app, gate: openGate(100), spans, clock, logger });
  await server.start();
  cleanups.push(
    () => collector.close(),
    () => server.stop(),
  );
  const get = async (path: string, headers: Record<string, string> = {}): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${server.address.port}${path}`, { headers });
    await response.text();
  };
  /** Returns all spans, after the last response. */
  const collected = async () => {
    await server.stop();
    await tracer.stop();
    return collector.spans;
  };
  return { get, collected };
};

it('a span is named by method and route, and contains neither path nor query', async () => {
  const { get, collected } = await start(1);
  await get('/keys/key_secret?token=secret');
  const [span, ...others] = await collected();
  expect(others).toEqual([]);
  expect(span).toMatchObject({ name: 'GET /keys/:id', kind: 2, scope: 'tunnel-platform' });
  expect(span?.attributes).toEqual({
    'http.request.method': 'GET',
    'http.route': '/keys/:id',
    'http.response.status_code': '200',
  });
  expect(JSON.stringify(span)).not.toContain('secret');
});

it('a request without a route is named by its method alone', async () => {
  const { get, collected } = await start(1);
  await get('/none/of/these');
  const [span] = await collected();
  expect([span?.name, span?.attributes['http.response.status_code'], span?.status]).toEqual(['GET', '404', undefined]);
});

it('an internal error is an error of the span', async () => {
  const { get, collected } = await start(1);
  await get('/broken');
  const [span] = await collected();
  expect([span?.attributes['http.response.status_code'], span?.status]).toEqual(['500', { code: 2 }]);
});

it('the decision of the edge in front applies, and a stranger with the same header has no influence', async () => {
  const { get, collected } = await start(0);
  await get('/keys/1', { traceparent: GIVEN });
  await get('/keys/2', { traceparent: GIVEN, 'x-tunnel-secret': 'wrong' });
  await get('/keys/3', { traceparent: GIVEN, 'x-tunnel-secret': 'of-the-edge', 'x-forwarded-for': '203.0.113.9' });
  const [span, ...others] = await collected();
  expect(others).toEqual([]);
  expect(span).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
});
