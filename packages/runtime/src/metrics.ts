// The metrics registry of one process: thin over prom-client, with a registry of its own so that two edges in one test do not meet.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export type { Counter, Gauge, Histogram } from 'prom-client';

/** Sets the gauge at scrape time: by returning the number, or through the gauge when it has labels. */
export type GaugeCollector = (gauge: Gauge<string>) => number | void | Promise<number | void>;

export interface Metrics {
  counter(name: string, help: string, labelNames?: readonly string[]): Counter<string>;
  gauge(name: string, help: string, labelNames?: readonly string[], collect?: GaugeCollector): Gauge<string>;
  histogram(name: string, help: string, buckets: readonly number[], labelNames?: readonly string[]): Histogram<string>;
  /** The text format that Prometheus scrapes. */
  text(): Promise<string>;
  readonly contentType: string;
}

export interface MetricsOptions {
  /** Adds memory, CPU, event-loop and collector figures of the process (`process_*`, `nodejs_*`). */
  readonly processMetrics?: boolean;
}

export const createMetrics = (options: MetricsOptions = {}): Metrics => {
  const register = new Registry();
  const registers = [register];
  if (options.processMetrics === true) collectDefaultMetrics({ register });
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
    text: () => register.metrics(),
    contentType: register.contentType,
  };
};

const collectInto = async (gauge: Gauge<string>, collect: GaugeCollector): Promise<void> => {
  const value = await collect(gauge);
  if (typeof value === 'number') gauge.set(value);
};
