// The series of the platform, for Prometheus: counted where it happens, or asked of the database when somebody scrapes.
import type { ToolName, ToolOutcome } from '@tunnel/mcp-tools';
import { type Counter, createMetrics, type Metrics } from '@tunnel/runtime';
import { countGrants } from './services/oauth/grants.ts';
import type { ServiceContext } from './services/service-context.ts';

export class PlatformMetrics {
  readonly #metrics: Metrics = createMetrics();
  readonly #mcpCalls: Counter<string>;

  constructor(context: Pick<ServiceContext, 'db' | 'clock'>) {
    this.#mcpCalls = this.#metrics.counter('tunnel_mcp_calls_total', 'Calls of tools at /mcp, by their end', [
      'tool',
      'outcome',
    ]);
    this.#metrics.gauge('tunnel_oauth_grants', 'Connected apps that may use /mcp', [], () => countGrants(context));
  }

  get contentType(): string {
    return this.#metrics.contentType;
  }

  countMcpCall(tool: ToolName, outcome: ToolOutcome['outcome']): void {
    this.#mcpCalls.inc({ tool, outcome });
  }

  /** Rejects while the database is away. */
  text(): Promise<string> {
    return this.#metrics.text();
  }
}
