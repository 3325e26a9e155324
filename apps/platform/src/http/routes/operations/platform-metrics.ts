// Prometheus metrics of the platform: counted at the source, or queried from the database at every scrape.
import type { ToolName, ToolOutcome } from '@tunnel/mcp/tools';
import { addBackupSeries, type BackupFigures, type Counter, createMetrics, type Metrics } from '@tunnel/runtime';
import { certificateFigures } from '../../../services/certificates/certificate-figures.ts';
import type { PlatformCertificates } from '../../../services/certificates/platform-certificates.ts';
import { countGrants } from '../../../services/oauth/grants.ts';
import type { ServiceContext } from '../../../services/shared/service-context.ts';

export interface ApiFigures {
  /** Number of refused calls by reason. */
  readonly refusals: Readonly<Record<string, number>>;
  readonly running: number;
  readonly waiting: number;
}

export interface MetricsContext extends Pick<ServiceContext, 'db' | 'clock'> {
  /** Numbers of refused, running and waiting API calls. */
  readonly admission: ApiFigures;
  /** The certificate orders of this platform. Null if `[acme]` is off. */
  readonly ordering: Pick<PlatformCertificates, 'results' | 'now'> | null;
  readonly version: string;
  /**
   * Figures of the backups; null while backups are off. Absent in a stack. A platform outside a stack exports these figures, and the
   * metrics of its process.
   */
  readonly backups?: (() => BackupFigures | null) | undefined;
  /** Returns the number of spans that the collector of traces did not get. */
  readonly droppedSpans: () => number;
}

const DROPPED_SPANS = 'Spans dropped because the queue was full or the collector did not accept them';

export class PlatformMetrics {
  readonly #metrics: Metrics = createMetrics();
  /** Metrics that an edge of the same stack exports, too. Left out in the edge's scrape. */
  readonly #ownMetrics: Metrics;
  readonly #mcpCalls: Counter<string>;

  constructor(context: MetricsContext) {
    this.#ownMetrics = createMetrics({ processMetrics: context.backups !== undefined });
    this.#mcpCalls = this.#metrics.counter('tunnel_mcp_calls_total', 'Tool calls at /mcp, by outcome', [
      'tool',
      'outcome',
    ]);
    this.#metrics.gauge('tunnel_oauth_grants', 'Connected apps with access to /mcp', [], () => countGrants(context));
    this.#addCalls(context.admission);
    const build = { labels: { version: context.version, node: process.versions.node }, value: 1 };
    this.#ownMetrics.seriesOf('tunnel_build_info', 'Versions of the server and of Node.js', 'gauge', () => [build]);
    if (context.backups !== undefined) addBackupSeries(this.#ownMetrics, context.backups);
    this.#ownMetrics.seriesOf('tunnel_trace_spans_dropped_total', DROPPED_SPANS, 'counter', () => [
      { labels: {}, value: context.droppedSpans() },
    ]);
    if (context.ordering !== null) this.#addCertificates(context.db, context.ordering);
  }

  get contentType(): string {
    return this.#metrics.contentType;
  }

  countMcpCall(tool: ToolName, outcome: ToolOutcome['outcome']): void {
    this.#mcpCalls.inc({ tool, outcome });
  }

  /** Returns all metrics as text. Rejects while the database is unavailable. */
  async text(): Promise<string> {
    const own = (await this.#ownMetrics.text()).trim();
    return `${await this.textForEdge()}${own === '' ? '' : `${own}\n`}`;
  }

  /** Returns the metrics that the edge of the same stack appends to its own metrics. */
  textForEdge(): Promise<string> {
    return this.#metrics.text();
  }

  #addCalls(admission: MetricsContext['admission']): void {
    this.#metrics.seriesOf('tunnel_api_refused_total', 'Rejected API calls, by limit', 'counter', () =>
      Object.entries(admission.refusals).map(([reason, value]) => ({ labels: { reason }, value })),
    );
    this.#metrics.seriesOf('tunnel_api_calls', 'API calls running and queued', 'gauge', () => [
      { labels: { state: 'running' }, value: admission.running },
      { labels: { state: 'waiting' }, value: admission.waiting },
    ]);
  }

  #addCertificates(db: ServiceContext['db'], ordering: NonNullable<MetricsContext['ordering']>): void {
    this.#metrics.seriesOf('tunnel_acme_orders_total', 'Certificate orders, by outcome', 'counter', () =>
      Object.entries(ordering.results).map(([result, value]) => ({ labels: { result }, value })),
    );
    this.#ownMetrics.gauge('tunnel_certificates', 'Certificates, by state', ['state'], async (gauge) => {
      const { states } = await certificateFigures(db, ordering.now());
      for (const [state, count] of states) gauge.set({ state }, count);
    });
    this.#metrics.gauge(
      'tunnel_certificate_due_seconds',
      'Seconds since the longest overdue certificate was due; above half an hour, no platform is ordering certificates',
      [],
      async () => (await certificateFigures(db, ordering.now())).dueSecs,
    );
  }
}
