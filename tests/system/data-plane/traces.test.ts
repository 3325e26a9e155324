// Traces through a real edge and a real client: one trace id from the visitor to the local service, and unchanged bytes without telemetry.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as secureRequest } from 'node:https';
import { FastClock, startTraceCollector, type TraceCollector } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from '../harness.fixture.ts';
import { askHttp, openHttp, startWeb } from '../http-tunnels.fixture.ts';
import { dialHttp2, nameOf, TLS_FLAGS, TRUST } from '../https-visitor.fixture.ts';
import { it, itWith } from '../in-process.fixture.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const GIVEN = `00-${TRACE}-${PARENT}-01`;

const telemetry = ({ url }: TraceCollector, ratio: number): string =>
  `[telemetry]\notlp_endpoint = "${url}"\notlp_headers = "api-key=of-the-test"\nsample_ratio = ${ratio}`;

/** Starts a service that records the header lines of its requests. */
const recordingWeb = async (harness: Harness) => {
  const heads: string[][] = [];
  const web = harness.use(
    await startWeb((request: IncomingMessage, response) => {
      heads.push(request.rawHeaders);
      response.end('served');
    }),
  );
  return { web, heads };
};

const valueOf = (head: readonly string[] | undefined, name: string): string | undefined => {
  const at = head?.findIndex((one, index) => index % 2 === 0 && one.toLowerCase() === name) ?? -1;
  return at === -1 ? undefined : head?.[at + 1];
};

it('a request has one trace id at the visitor, in the span of the edge and at the local service', async ({
  harness,
}) => {
  const collector = harness.use(await startTraceCollector());
  const { web, heads } = await recordingWeb(harness);
  const tables = telemetry(collector, 1);
  const plain = await harness.stack({ tables });
  const secure = await harness.stack({ tables, tls: true });
  const { endpoint, ready } = await openHttp(harness, plain, web.port);
  await askHttp(endpoint, { path: '/http1?secret', headers: { traceparent: GIVEN } });
  const opened = await openHttp(harness, secure, web.port, TLS_FLAGS);
  const { host, port } = opened.endpoint;
  const sent = secureRequest({
    ...TRUST,
    hostname: '127.0.0.1',
    port,
    servername: nameOf(opened.endpoint),
    path: '/tls',
    headers: { host, traceparent: GIVEN },
    agent: false,
  }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  const stream = dialHttp2(harness, opened.endpoint).request({ ':path': '/http2', traceparent: GIVEN });
  stream.resume();
  await once(stream, 'end');
  // Remaining spans are delivered when the edge stops.
  await plain.stop();
  await secure.stop();
  expect(collector.spans.map(({ attributes }) => attributes['url.path'])).toEqual(['/http1', '/tls', '/http2']);
  expect(collector.last?.headers['api-key']).toBe('of-the-test');
  for (const [at, span] of collector.spans.entries()) {
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, name: 'GET', scope: 'tunnel-edge' });
    expect(valueOf(heads[at], 'traceparent')).toBe(`00-${TRACE}-${span.spanId}-01`);
  }
  expect(collector.spans[0]?.attributes['tunnel.id']).toBe(ready.tunnel_id);
});

// A batch is due after 5 s, which this clock shortens.
itWith({ clock: new FastClock(20) })(
  'the metrics count spans that the collector did not accept',
  async ({ harness }) => {
    const collector = harness.use(await startTraceCollector());
    collector.mode = 500;
    const { web } = await recordingWeb(harness);
    const stack = await harness.stack({ tables: telemetry(collector, 1) });
    expect(await stack.metric('tunnel_trace_spans_dropped_total')).toBe(0);
    const { endpoint } = await openHttp(harness, stack, web.port);
    for (let at = 0; at < 3; at += 1) await askHttp(endpoint);
    await expect.poll(() => stack.metric('tunnel_trace_spans_dropped_total')).toBe(3);
  },
);

it('without telemetry, the local service gets the same bytes, and the trace headers of the visitor unchanged', async ({
  harness,
}) => {
  const { web, heads } = await recordingWeb(harness);
  const stack = await harness.stack();
  const { endpoint } = await openHttp(harness, stack, web.port);
  await askHttp(endpoint, { headers: { accept: '*/*' } });
  await askHttp(endpoint, { headers: { accept: '*/*', TraceParent: GIVEN, tracestate: 'vendor=1' } });
  await askHttp(endpoint, { headers: { accept: '*/*', traceparent: 'not valid' } });
  const [plain = [], traced = [], invalid = []] = heads;
  expect(valueOf(plain, 'traceparent')).toBeUndefined();
  const without = (head: readonly string[]): string[] =>
    head.filter((_, at) => !/^trace(parent|state)$/i.test(head[at - (at % 2)] ?? ''));
  expect([without(traced), without(invalid)]).toEqual([plain, plain]);
  expect(traced.slice(traced.indexOf('TraceParent')).slice(0, 4)).toEqual([
    'TraceParent',
    GIVEN,
    'tracestate',
    'vendor=1',
  ]);
  expect(valueOf(invalid, 'traceparent')).toBe('not valid');
  expect(await stack.metric('tunnel_trace_spans_dropped_total')).toBe(0);
});
