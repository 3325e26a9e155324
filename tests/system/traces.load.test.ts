// Tens of thousands of requests while the collector of traces misbehaves: no request is lost, and the memory of the edge stays bounded.
import { connect } from 'node:net';
import { type CollectorMode, startTraceCollector } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { openHttp, type PublicEndpoint, residentMb, startWeb } from './http-tunnels.fixture.ts';
import { it } from './system-test.fixture.ts';

const CONNECTIONS = 20;
const REQUESTS_PER_CONNECTION = 400;
const REQUESTS = CONNECTIONS * REQUESTS_PER_CONNECTION;
/** Half of the requests leave a span, so that the spans of one round exceed the queue. */
const RATIO = 0.5;
/** A busy machine serves a few hundred requests per second. */
const TIMEOUT_MS = 600_000;
const QUEUE_SPANS = 2048;
/** Memory that the edge can need in addition: the queue, one batch as text, and the noise of the garbage collector. */
const GROWTH_MB = 60;

/** Sends requests over a kept connection, with a few in flight. Resolves with the number of complete responses. */
const visit = ({ host, port }: PublicEndpoint): Promise<number> =>
  new Promise((resolve) => {
    const request = `GET /a HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const socket = connect(port, '127.0.0.1');
    let [sent, answered] = [0, 0];
    let rest = '';
    const send = (): void => {
      for (; sent < REQUESTS_PER_CONNECTION && sent - answered < 8; sent += 1) socket.write(request);
      if (answered === REQUESTS_PER_CONNECTION) socket.destroy();
    };
    socket.on('connect', send);
    socket.on('data', (chunk) => {
      const parts = (rest + chunk.toString('latin1')).split('served');
      rest = parts.pop() ?? '';
      answered += parts.filter((head) => head.startsWith('HTTP/1.1 200 ')).length;
      send();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answered));
  });

const load = async (endpoint: PublicEndpoint): Promise<number> => {
  const answered = await Promise.all(Array.from({ length: CONNECTIONS }, () => visit(endpoint)));
  return answered.reduce((sum, count) => sum + count, 0);
};

const MODES: readonly CollectorMode[] = ['accept', 'hang', 'drip', 500, 'reset', 'huge', 'never-read'];

describe('a collector of traces', () => {
  it('that misbehaves costs no request and no memory', { timeout: TIMEOUT_MS }, async ({ harness }) => {
    const collector = harness.use(await startTraceCollector());
    const web = harness.use(await startWeb((_, response) => void response.end('served')));
    const stack = await harness.stack({
      tables: `[telemetry]\notlp_endpoint = "${collector.url}"\nsample_ratio = ${RATIO}`,
    });
    const { endpoint } = await openHttp(harness, stack, web.port);
    const dropped = (): Promise<number> => stack.metric('tunnel_trace_spans_dropped_total');
    const memoryMb = (): number => residentMb(stack.program.pid ?? 0);
    expect(await load(endpoint)).toBe(REQUESTS);
    const beforeMb = memoryMb();
    let requests = REQUESTS;
    for (const mode of MODES) {
      collector.mode = mode;
      expect([mode, await load(endpoint)]).toEqual([mode, REQUESTS]);
      requests += REQUESTS;
    }
    expect(memoryMb() - beforeMb).toBeLessThan(GROWTH_MB);
    const lost = await dropped();
    expect(lost).toBeGreaterThan(0);
    collector.mode = 'accept';
    await stack.stop();
    const sampled = lost + collector.spans.length;
    // Of the remaining spans, each was delivered, dropped at the end, or accepted by the collector with an endless body.
    expect(sampled).toBeLessThan(requests * RATIO * 1.1);
    expect(sampled).toBeGreaterThan(requests * RATIO * 0.5 - QUEUE_SPANS);
  });
});
