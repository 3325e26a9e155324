// Spans of visitors' requests over HTTP/1.1 and HTTP/2, and the trace headers that the local service receives.
import { createServer } from 'node:http2';
import * as net from 'node:net';
import type { Rule } from '@tunnel/policy';
import { type CollectedSpan, eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { captureStore } from '../../capture/capture.fixture.ts';
import { Replays } from '../../capture/replay.ts';
import { startGroupStand } from './group.fixture.ts';
import { startHttpStand, talk } from './http.fixture.ts';
import { type PolicyStand, startPolicyStand, VERSIONS } from './policy-stand.fixture.ts';
import { startRecordingService, takeStream } from './service.fixture.ts';
import { startTracing, type Tracing } from './tracing.fixture.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const GIVEN = `00-${TRACE}-${PARENT}-01`;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const tracingOf = async (settings?: Parameters<typeof startTracing>[0]): Promise<Tracing> => {
  const tracing = await startTracing(settings);
  cleanups.push(() => tracing.stop());
  return tracing;
};

interface Stand extends PolicyStand {
  /** Trace headers of the requests at the service. */
  readonly seen: { readonly traceparent: unknown; readonly tracestate: unknown }[];
}

const start = async (
  tracing: Tracing,
  rules: readonly Rule[] = [],
  more: Parameters<typeof startPolicyStand>[1] = {},
): Promise<Stand> => {
  const seen: Stand['seen'][number][] = [];
  const stand = await startPolicyStand(rules, {
    listener: ({ headers, url }, response) => {
      const { traceparent, tracestate } = headers;
      seen.push({ traceparent, tracestate });
      response.writeHead(url === '/teapot' ? 418 : 200).end('served');
    },
    ...tracing.options,
    ...more,
  });
  cleanups.push(() => stand.stop());
  return Object.assign(stand, { seen });
};

const idsOf = (value: unknown): { traceId?: string; spanId?: string; flags?: string } => {
  const [, traceId, spanId, flags] = String(value).split('-');
  return { traceId, spanId, flags } as never;
};

/** Returns the only span. */
const onlySpan = async (tracing: Tracing): Promise<CollectedSpan> => {
  const spans = await tracing.spans();
  expect(spans).toHaveLength(1);
  return spans[0] as CollectedSpan;
};

describe.each(VERSIONS)('a request over %s', (version) => {
  it('leaves one server span with exactly the documented attributes, without query, headers and body', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing);
    const visit = { method: 'POST', headers: { authorization: 'Bearer of-the-visitor' }, body: 'a body' };
    await stand.visit(version, '/orders/7;v=1?token=secret&x=1', visit);
    const span = await onlySpan(tracing);
    expect(span).toMatchObject({ name: 'POST', kind: 2, scope: 'tunnel-edge' });
    expect(span.parentSpanId).toBeUndefined();
    expect(span.status).toBeUndefined();
    expect(span.attributes).toEqual({
      'http.request.method': 'POST',
      'url.path': '/orders/7;v=1',
      'client.address': '127.0.0.1',
      'tunnel.label': 'web',
      'tunnel.id': 'tun_1',
      'http.response.status_code': '200',
    });
    expect(span.events).toEqual(['tunnel.service.wait', 'tunnel.service.response']);
    expect(BigInt(span.endTimeUnixNano) > BigInt(span.startTimeUnixNano)).toBe(true);
    expect(JSON.stringify(span)).not.toMatch(/secret|of-the-visitor|a body/);
    expect(stand.seen).toEqual([{ traceparent: `00-${span.traceId}-${span.spanId}-01`, tracestate: undefined }]);
  });

  it("belongs to the visitor's trace, and the service's parent is the span of the edge", async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing);
    await stand.visit(version, '/', { headers: { traceparent: GIVEN, tracestate: 'vendor=1' } });
    const span = await onlySpan(tracing);
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
    expect(stand.seen).toEqual([{ traceparent: `00-${TRACE}-${span.spanId}-01`, tracestate: 'vendor=1' }]);
  });

  it('starts another trace if the header of the visitor is invalid, and removes its tracestate', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing);
    await stand.visit(version, '/', { headers: { traceparent: `${GIVEN}-x`, tracestate: 'vendor=1' } });
    const span = await onlySpan(tracing);
    expect([span.traceId === TRACE, span.parentSpanId]).toEqual([false, undefined]);
    expect(stand.seen).toEqual([{ traceparent: `00-${span.traceId}-${span.spanId}-01`, tracestate: undefined }]);
  });

  it('starts a trace without the tracestate of the visitor, which belongs to no trace', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing);
    await stand.visit(version, '/', { headers: { tracestate: 'vendor=1' } });
    const span = await onlySpan(tracing);
    expect(stand.seen).toEqual([{ traceparent: `00-${span.traceId}-${span.spanId}-01`, tracestate: undefined }]);
  });

  it('has one traceparent even if a rule of the tunnel sets the header', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing, [{ request_headers: { set: { traceparent: GIVEN } } }]);
    await stand.visit(version, '/');
    const span = await onlySpan(tracing);
    expect(stand.seen).toEqual([{ traceparent: `00-${span.traceId}-${span.spanId}-01`, tracestate: undefined }]);
  });

  it('with an unknown method has no name chosen by the visitor', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing);
    await stand.visit(version, '/', { method: 'X-4711' });
    const span = await onlySpan(tracing);
    expect(span).toMatchObject({ name: 'HTTP', attributes: { 'http.request.method': '_OTHER' } });
  });

  it('that is not sampled reaches the service with flag 00 if the visitor sent a header, else without a header', async () => {
    const tracing = await tracingOf({ ratio: 0 });
    const stand = await start(tracing);
    await stand.visit(version, '/', { headers: { traceparent: GIVEN, tracestate: 'vendor=1' } });
    await stand.visit(version, '/');
    expect(await tracing.spans()).toEqual([]);
    const [first, second] = stand.seen;
    expect(idsOf(first?.traceparent)).toMatchObject({ traceId: TRACE, flags: '00' });
    expect(idsOf(first?.traceparent).spanId).not.toBe(PARENT);
    expect([first?.tracestate, second]).toEqual(['vendor=1', { traceparent: undefined, tracestate: undefined }]);
  });

  it('follows the flag of the visitor only with trust_traceparent', async () => {
    const tracing = await tracingOf({ ratio: 0, trust: true });
    const stand = await start(tracing);
    await stand.visit(version, '/', { headers: { traceparent: GIVEN } });
    await stand.visit(version, '/', { headers: { traceparent: GIVEN.replace(/01$/, '00') } });
    expect(await onlySpan(tracing)).toMatchObject({ traceId: TRACE });
    expect(stand.seen.map(({ traceparent }) => idsOf(traceparent).flags)).toEqual(['01', '00']);
  });

  it.each<[string, Rule, string]>([
    ['its number', { deny: 403 }, '1'],
    ['its name', { name: 'closed', deny: 403 }, 'closed'],
  ])('that a rule answers has the rule by %s, and no event of a service', async (_, rule, shown) => {
    const tracing = await tracingOf();
    const stand = await start(tracing, [rule]);
    await stand.visit(version, '/secret?x=1');
    const span = await onlySpan(tracing);
    expect(span.attributes).toEqual({
      'http.request.method': 'GET',
      'url.path': '/secret',
      'client.address': '127.0.0.1',
      'tunnel.label': 'web',
      'tunnel.id': 'tun_1',
      'tunnel.policy.rule': shown,
      'http.response.status_code': '403',
    });
    expect([span.events, span.status]).toEqual([[], undefined]);
    expect(stand.seen).toEqual([]);
  });

  it('with a body beyond the limit of a rule names that rule', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing, [{ name: 'small', max_body: 10 }]);
    await stand.visit(version, '/', { method: 'POST', body: 'x'.repeat(100), isChunked: true });
    const { attributes } = await onlySpan(tracing);
    expect(attributes).toMatchObject({ 'tunnel.policy.rule': 'small', 'http.response.status_code': '413' });
  });

  it('to a service that cannot be reached has an error with the code of the error page', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing);
    stand.http.localPort = 1;
    expect((await stand.visit(version, '/')).status).toBe(502);
    const span = await onlySpan(tracing);
    expect(span.attributes).toMatchObject({ 'http.response.status_code': '502', 'tunnel.id': 'tun_1' });
    expect(span.status).toEqual({ code: 2, message: 'LOCAL_UNREACHABLE' });
    expect(span.events).not.toContain('tunnel.service.response');
  });

  it('with an error of the service has the status of the service, and no code', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing, [], { listener: (_, response) => void response.writeHead(503).end() });
    await stand.visit(version, '/');
    const span = await onlySpan(tracing);
    expect([span.attributes['http.response.status_code'], span.status]).toEqual(['503', { code: 2 }]);
  });

  it('to an unknown host has no tunnel', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing);
    const hosted = version === 'HTTP/2' ? { ':authority': 'none.localhost' } : { host: 'none.localhost' };
    expect((await stand.visit(version, '/', { headers: hosted })).status).toBe(404);
    const { attributes, status } = await onlySpan(tracing);
    expect(Object.keys(attributes).sort()).toEqual([
      'client.address',
      'http.request.method',
      'http.response.status_code',
      'url.path',
    ]);
    expect(status).toBeUndefined();
  });

  it('that breaks off in the middle of the response has an error', async () => {
    const tracing = await tracingOf();
    const stand = await start(tracing, [], {
      listener: (_, response) => {
        response.writeHead(200, { 'content-length': '100' }).write('half');
        setImmediate(() => response.socket?.destroy());
      },
    });
    await expect(stand.visit(version, '/')).rejects.toThrow();
    await eventually(() => expect(stand.http.ingress.totals.responses[2]).toBe(1));
    await eventually(() => expect(stand.http.tunnel.counters.openConnections).toBe(0));
    const span = await onlySpan(tracing);
    expect(span.attributes['http.response.status_code']).toBe('200');
    expect(span.status).toEqual({ code: 2, message: 'LOCAL_CLOSED' });
  });
});

const REQUEST = 'GET /a HTTP/1.1\r\nHost: web.edge.test\r\n';

it('requests of a connection each have a span of their own', async () => {
  const tracing = await tracingOf();
  const service = await startRecordingService('served');
  const stand = await startHttpStand(service.port, tracing.options);
  cleanups.push(
    () => service.close(),
    () => stand.stop(),
  );
  await talk(stand.port, `${REQUEST}\r\n${REQUEST}Connection: close\r\n\r\n`);
  const spans = await tracing.spans();
  expect(spans).toHaveLength(2);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(2);
  expect(spans.map(({ attributes }) => attributes['http.response.status_code'])).toEqual(['200', '200']);
});

it('a visitor that leaves without a response has a span without a status', async () => {
  const tracing = await tracingOf();
  const stand = await startHttpStand(1, { ...tracing.options, onStream: (stream) => takeStream(stream) });
  cleanups.push(() => stand.stop());
  const socket = net.connect(stand.port, '127.0.0.1');
  socket.write(`${REQUEST}\r\n`);
  await eventually(() => expect(stand.tunnel.counters.requests).toBe(1));
  socket.destroy();
  await eventually(() => expect(stand.ingress.connections).toBe(0));
  const span = await onlySpan(tracing);
  expect([span.attributes['http.response.status_code'], span.status]).toEqual([undefined, undefined]);
});

it('a repeated traceparent header is invalid, and the service gets a single one', async () => {
  const tracing = await tracingOf({ ratio: 0 });
  let head = '';
  const stand = await startHttpStand(1, {
    ...tracing.options,
    onStream: (stream) => {
      const answer = 'HTTP/1.1 204 No Content\r\n\r\n';
      takeStream(stream, { answer, onText: (text) => (head = text) });
    },
  });
  cleanups.push(() => stand.stop());
  await talk(stand.port, `${REQUEST}Traceparent: ${GIVEN}\r\ntraceparent: ${GIVEN}\r\nConnection: close\r\n\r\n`);
  const lines = head.split('\r\n').filter((line) => /^traceparent:/i.test(line));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^traceparent: 00-(?!0af765)[0-9a-f]{32}-[0-9a-f]{16}-00$/);
});

it('a retry on the next member stays in one span, which names the member that served the request', async () => {
  const tracing = await tracingOf();
  const seen: unknown[] = [];
  const service = await startRecordingService('two', ({ headers }, response) => {
    seen.push(headers['traceparent']);
    response.end('two');
  });
  const members = [{ localPort: 1 }, { localPort: service.port }];
  const stand = await startGroupStand(members, { random: () => 0, ...tracing.options });
  cleanups.push(
    () => service.close(),
    () => stand.stop(),
  );
  await talk(stand.port, `${REQUEST}Connection: close\r\n\r\n`);
  expect(stand.members.map(({ offered }) => offered)).toEqual([1, 1]);
  const span = await onlySpan(tracing);
  expect(span.attributes).toMatchObject({ 'tunnel.id': 'tun_2', 'http.response.status_code': '200' });
  expect(span.status).toBeUndefined();
  expect(seen).toEqual([`00-${span.traceId}-${span.spanId}-01`]);
});

it('the span of an upgraded connection ends with the switch, while the connection is still open', async () => {
  const tracing = await tracingOf();
  const answer = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';
  let head = '';
  const stand = await startHttpStand(1, {
    ...tracing.options,
    onStream: (stream) => takeStream(stream, { answer, onText: (text) => (head = text) }),
  });
  cleanups.push(() => stand.stop());
  const socket = net.connect(stand.port, '127.0.0.1');
  cleanups.push(() => socket.destroy());
  socket.write(`${REQUEST}Connection: Upgrade\r\nUpgrade: echo\r\n\r\n`);
  await eventually(() => expect(stand.ingress.totals.responses[1]).toBe(1));
  const span = await onlySpan(tracing);
  expect(span.attributes['http.response.status_code']).toBe('101');
  expect(head).toContain(`\r\ntraceparent: 00-${span.traceId}-${span.spanId}-01\r\n`);
  expect(stand.ingress.connections).toBe(1);
});

it('a replay sends the captured headers of the visitor, and leaves no span', async () => {
  const tracing = await tracingOf();
  const seen: unknown[] = [];
  const service = await startRecordingService('served', ({ headers }, response) => {
    seen.push(headers['traceparent']);
    response.end('served');
  });
  const { store } = captureStore();
  const stand = await startHttpStand(service.port, { ...tracing.options, captures: store });
  cleanups.push(
    () => service.close(),
    () => stand.stop(),
  );
  await talk(stand.port, `${REQUEST}traceparent: ${GIVEN}\r\nConnection: close\r\n\r\n`);
  const [original] = store.list('tun_1', 1).recorders;
  if (original === undefined) throw new Error('nothing was captured');
  expect(original.requestText).toContain(`\r\ntraceparent: ${GIVEN}\r\n`);
  await eventually(() => expect(original.durationMs).not.toBeNull());
  const replays = new Replays({ store, clock: tracing.options.clock, http: stand.ingress });
  await replays.replay({ tunnel: stand.tunnel, original, visitorAddress: '127.0.0.1' });
  const span = await onlySpan(tracing);
  expect(seen).toEqual([`00-${TRACE}-${span.spanId}-01`, GIVEN]);
});

describe('behind a trusted proxy', () => {
  it('client.address is the address that the proxy names', async () => {
    const tracing = await tracingOf();
    const service = await startRecordingService('served');
    const stand = await startHttpStand(service.port, { ...tracing.options, trustedProxies: ['127.0.0.0/8'] });
    cleanups.push(
      () => service.close(),
      () => stand.stop(),
    );
    await talk(stand.port, `${REQUEST}X-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n\r\n`);
    expect((await onlySpan(tracing)).attributes['client.address']).toBe('203.0.113.9');
  });
});

describe('without telemetry', () => {
  /** Returns the bytes that the service receives for a request with the given header lines. */
  const bytesFor = async (lines: string): Promise<string> => {
    let head = '';
    const answer = 'HTTP/1.1 204 No Content\r\n\r\n';
    const onStream = (stream: Parameters<typeof takeStream>[0]): void =>
      takeStream(stream, { answer, onText: (text) => (head = text) });
    const stand = await startHttpStand(1, { onStream });
    cleanups.push(() => stand.stop());
    await talk(
      stand.port,
      `GET /a?b HTTP/1.1\r\nHost: web.edge.test\r\nAccept: */*\r\n${lines}Connection: close\r\n\r\n`,
    );
    return head;
  };

  it('the head sent to the service is the same byte for byte, and trace headers pass unchanged in their place', async () => {
    const plain = await bytesFor('X-Last: 1\r\n');
    expect(plain).not.toMatch(/trace/i);
    for (const lines of [
      `traceparent: ${GIVEN}\r\n`,
      `TraceParent:   ${GIVEN}  \r\nTraceState: vendor=1\r\n`,
      'traceparent: rubbish\r\ntraceparent: twice\r\n',
    ]) {
      const traced = await bytesFor(`${lines}X-Last: 1\r\n`);
      expect(traced).toContain(lines);
      expect(traced.replace(lines, '')).toBe(plain);
    }
  });

  it('no object for a trace exists', async () => {
    const stand = await startHttpStand(1);
    cleanups.push(() => stand.stop());
    expect(stand.ingress.tracer).toBeNull();
  });
});

it('an HTTP/2 service receives the header, too', async () => {
  const tracing = await tracingOf();
  const seen: unknown[] = [];
  const service = createServer();
  const sessions = new Set<{ destroy(): void }>();
  service.on('session', (session) => sessions.add(session));
  service.on('stream', (stream, headers) => {
    seen.push(headers['traceparent']);
    stream.respond({ ':status': 200 });
    stream.end('served');
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const { port } = service.address() as net.AddressInfo;
  const stand = await startHttpStand(port, { ...tracing.options, http: { localProtocol: 'h2c' } });
  cleanups.push(
    () => service.close(),
    () => sessions.forEach((session) => session.destroy()),
    () => stand.stop(),
  );
  await talk(stand.port, `${REQUEST}traceparent: ${GIVEN}\r\nConnection: close\r\n\r\n`);
  const span = await onlySpan(tracing);
  expect(seen).toEqual([`00-${TRACE}-${span.spanId}-01`]);
});
