// Metrics registry of a process, based on prom-client with a separate registry, so that two edges in a test do not share metrics.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export type { Counter, Gauge, Histogram } from 'prom-client';

/** Sets the gauge at scrape time: returns the number, or uses the gauge if it has labels. */
export type GaugeCollector = (gauge: Gauge<string>) => number | void | Promise<number | void>;

export interface Metrics {
  counter(name: string, help: string, labelNames?: readonly string[]): Counter<string>;
  gauge(name: string, help: string, labelNames?: readonly string[], collect?: GaugeCollector): Gauge<string>;
  histogram(name: string, help: string, buckets: readonly number[], labelNames?: readonly string[]): Histogram<string>;
  /** Registers a histogram that is counted elsewhere, for code where an observation must cost almost nothing. */
  histogramOf(name: string, help: string, labels: Readonly<Record<string, string>>, counts: BucketCounts): void;
  /** Registers a metric with dynamic series. `read` returns the current series at scrape time. */
  seriesOf(name: string, help: string, type: 'counter' | 'gauge', read: () => readonly Sample[]): void;
  /** Returns all metrics in Prometheus text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Counts of a histogram, read at scrape time. */
export interface BucketCounts {
  readonly boundsSecs: readonly number[];
  /** Counts per bucket of the histogram, not cumulative; one more than the bounds. */
  readonly counts: readonly number[];
  readonly sumSecs: number;
}

/**
 * Interval at which the event loop's lag is sampled. Every sample wakes the process: with prom-client's default of 10 ms, an idle edge spent
 * most of its CPU time on samples.
 */
const LAG_SAMPLE_MS = 50;

export interface MetricsOptions {
  /** Adds memory, CPU, event loop and garbage collection metrics of the process (`process_*`, `nodejs_*`). */
  readonly processMetrics?: boolean;
}

export const createMetrics = (options: MetricsOptions = {}): Metrics => {
  const register = new Registry();
  const registers = [register];
  if (options.processMetrics === true) collectDefaultMetrics({ register, eventLoopMonitoringPrecision: LAG_SAMPLE_MS });
  return {
    counter: (name, help, labelNames = []) => new Counter({ name, help, labelNames: [...labelNames], registers }),
    gauge: (name, help, labelNames = [], collect) => {
      const gauge: Gauge<string> = new Gauge({
        name,
        help,
        labelNames: [...labelNames],
        registers,
        ...(collect === undefined ? {} : { collect: () => collectInto(gauge, collect) }),
      });
      return gauge;
    },
    histogram: (name, help, buckets, labelNames = []) =>
      new Histogram({ name, help, buckets: [...buckets], labelNames: [...labelNames], registers }),
    histogramOf: (name, help, labels, counts) =>
      registerRead(register, name, () => ({ name, help, type: 'histogram', values: valuesOf(name, labels, counts) })),
    seriesOf: (name, help, type, read) => registerRead(register, name, () => ({ name, help, type, values: read() })),
    text: () => register.metrics(),
    contentType: register.contentType,
  };
};

/** Registers a metric that is read at scrape time. The registry only uses its name and values. */
const registerRead = (register: Registry, name: string, read: () => object): void => {
  register.registerMetric({ name, get: async () => read() } as unknown as Gauge<string>);
};

const collectInto = async (gauge: Gauge<string>, collect: GaugeCollector): Promise<void> => {
  const value = await collect(gauge);
  if (typeof value === 'number') gauge.set(value);
};

const valuesOf = (
  name: string,
  labels: Readonly<Record<string, string>>,
  { boundsSecs, counts, sumSecs }: BucketCounts,
) => {
  let total = 0;
  const buckets = counts.map((count, at) => {
    total += count;
    return { metricName: `${name}_bucket`, labels: { le: boundsSecs[at] ?? '+Inf', ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sumSecs },
    { metricName: `${name}_count`, labels, value: total },
  ];
};
