// Servers, clients and visitors for `npm run try:traces`.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { type CollectedSpan, eventually, freePort, startTraceCollector, type TraceCollector } from '@tunnel/testkit';
import { Harness } from '../../system/harness.fixture.ts';
import { askHttp, openHttp, type PublicEndpoint, residentMb, startWeb } from '../../system/http-tunnels.fixture.ts';
import { TLS_CERT } from '../../system/stack.fixture.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const GIVEN = `00-${TRACE}-${PARENT}-01`;

type Verdict = readonly [what: string, isRight: boolean];

interface Load {
  readonly endpoint: PublicEndpoint;
  dropped(): Promise<number>;
  memoryMb(): number;
}

export class TracesTrial {
  /** The end of the way: gets the spans from the real collector, or directly from the edge. */
  readonly sink: TraceCollector;
  readonly #harness = new Harness();

  static async open(): Promise<TracesTrial> {
    return new TracesTrial(await startTraceCollector());
  }

  constructor(sink: TraceCollector) {
    this.sink = sink;
  }

  /** Visits a tunnel and the platform's page through a stack that sends every span to the collector. */
  async walk(collectorUrl: string): Promise<Verdict[]> {
    const harness = this.#harness;
    const seen = new Map<string, IncomingHttpHeaders>();
    const web = harness.use(
      await startWeb(({ url = '', headers }, response) => {
        seen.set(url.split('?')[0] ?? '', headers);
        response.end('served');
      }),
    );
    const tables = `[telemetry]\notlp_endpoint = "${collectorUrl}"\nsample_ratio = 1\nservice_name = "try-traces"`;
    const plain = await harness.stack({ tables });
    const { endpoint } = await openHttp(harness, plain, web.port);
    await askHttp(endpoint, { path: '/http1?token=secret', headers: { traceparent: GIVEN } });
    await askHttp(endpoint, { path: '/alone' });
    const https = await freePort();
    const env = {
      TUNNEL_SERVER__HTTPS_PORT: `${https}`,
      TUNNEL_PLATFORM__PUBLIC_URL: `https://localhost:${https}`,
    };
    const stack = await harness.stack({ command: 'stack', tls: true, env, tables });
    const opened = await openHttp(harness, stack, web.port, ['--tls', '--ca-file', TLS_CERT]);
    const { host } = opened.endpoint;
    const servername = host.replace(/:\d+$/, '');
    await askHttp2({ port: https, servername, host, path: '/http2' });
    await askTls({ port: https, servername, host, path: '/tls' });
    await askTls({ port: https, servername: 'localhost', host: `localhost:${https}`, path: '/health?token=secret' });
    await eventually(() => this.#expectSpans(['/http1', '/alone', '/http2', '/tls', '/health']), { timeoutMs: 30_000 });
    return [...this.#verdicts(seen), ...this.#verdictsOnPlatform()];
  }

  #spanAt(path: string): CollectedSpan | undefined {
    return this.sink.spans.find(({ attributes }) => attributes['url.path'] === path);
  }

  #expectSpans(paths: readonly string[]): void {
    const missing = paths.filter((path) => this.#spanAt(path) === undefined);
    if (missing.length > 0) throw new Error(`no span of ${missing.join(', ')}`);
    if (this.#platformSpan === undefined) throw new Error('no span of the platform');
  }

  #verdicts(seen: ReadonlyMap<string, IncomingHttpHeaders>): Verdict[] {
    return ['/http1', '/alone', '/http2', '/tls'].map((path) => {
      const span = this.#spanAt(path);
      const isOfVisitor = path === '/alone' || (span?.traceId === TRACE && span.parentSpanId === PARENT);
      const passed = `00-${span?.traceId}-${span?.spanId}-01`;
      return [`${path}: one trace from visitor to service`, isOfVisitor && seen.get(path)?.['traceparent'] === passed];
    });
  }

  get #platformSpan(): CollectedSpan | undefined {
    return this.sink.spans.find(({ name, scope }) => scope === 'tunnel-platform' && name === 'GET /health');
  }

  #verdictsOnPlatform(): Verdict[] {
    const edge = this.#spanAt('/health');
    const platform = this.#platformSpan;
    const isChild = platform?.traceId === edge?.traceId && platform?.parentSpanId === edge?.spanId;
    return [
      ['the span of the platform is a child of the span of the edge', platform !== undefined && isChild],
      ['no span contains a query', !JSON.stringify(this.sink.spans).includes('secret')],
      ['every span is a server span', this.sink.spans.every(({ kind }) => kind === 2)],
    ];
  }

  /** Starts an edge with a tunnel for load. One request in a hundred has a span. */
  async openLoad(): Promise<Load> {
    const harness = this.#harness;
    const web = harness.use(await startWeb((_, response) => void response.end('served')));
    const tables = `[telemetry]\notlp_endpoint = "${this.sink.url}"`;
    const stack = await harness.stack({ tables });
    const { endpoint } = await openHttp(harness, stack, web.port);
    return {
      endpoint,
      dropped: () => stack.metric('tunnel_trace_spans_dropped_total'),
      memoryMb: () => residentMb(stack.program.pid),
    };
  }

  async close(): Promise<void> {
    await this.#harness.close();
    await this.sink.close();
  }
}

interface TlsVisit {
  readonly port: number;
  readonly servername: string;
  readonly host: string;
  readonly path: string;
}

/** TLS options of a visitor that trusts the test certificate. Node.js accepts no wildcard directly below a top-level domain. */
const trusted = () => ({ ca: readFileSync(TLS_CERT), checkServerIdentity: () => undefined, host: '127.0.0.1' });

const askTls = async ({ port, servername, host, path }: TlsVisit): Promise<void> => {
  const headers = { host, traceparent: GIVEN };
  const sent = request({ ...trusted(), port, servername, path, headers, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
};

const askHttp2 = async ({ port, servername, host, path }: TlsVisit): Promise<void> => {
  const session = connectHttp2(`https://${host}`, {
    createConnection: () => connectTls({ ...trusted(), port, servername, ALPNProtocols: ['h2'] }),
  });
  const stream = session.request({ ':path': path, traceparent: GIVEN });
  stream.resume();
  await once(stream, 'end');
  session.close();
};
