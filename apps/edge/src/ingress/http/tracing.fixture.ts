// A tracer with a collector, for tests of the spans of an ingress. Used by tests only.

import { createLogger, createTracer, Secret, systemClock, type Tracer } from '@tunnel/runtime';
import { type CollectedSpan, startTraceCollector } from '@tunnel/testkit';

export interface Tracing {
  /** Options of an ingress with telemetry. */
  readonly options: { readonly tracer: Tracer; readonly clock: typeof systemClock };
  /** Stops the tracer and returns all spans, in the order of their ends. */
  spans(): Promise<readonly CollectedSpan[]>;
  stop(): Promise<void>;
}

export const startTracing = async (settings: { ratio?: number; trust?: boolean } = {}): Promise<Tracing> => {
  const collector = await startTraceCollector();
  const { ratio = 1, trust = false } = settings;
  const logger = createLogger({ level: 'silent', format: 'json' });
  const tracer = createTracer(
    {
      otlp_endpoint: collector.url,
      otlp_headers: new Secret(''),
      sample_ratio: ratio,
      trust_traceparent: trust,
      service_name: 'tunnel',
    },
    { part: 'edge', version: '1.2.3', clock: systemClock, logger },
  );
  if (tracer === null) throw new Error('there is an endpoint');
  return {
    options: { tracer, clock: systemClock },
    spans: async () => {
      await tracer.stop();
      return collector.spans;
    },
    stop: () => collector.close(),
  };
};
