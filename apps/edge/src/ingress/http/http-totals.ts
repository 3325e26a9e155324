// Totals of the HTTP ingress since the start. Plain numbers, because every request changes them; metrics are read from them at a scrape.

/** Upper bounds, in seconds, of the time from the first byte of the request's head to the first byte of the response's head. */
export const WHOLE_BUCKETS_SECS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;
/** Upper bounds, in seconds, of the edge's share of the response time, which is microseconds normally. */
export const EDGE_BUCKETS_SECS = [
  0.000_05, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
] as const;

/** Counts durations of requests by bucket. Avoids the label lookup that makes prom-client's histogram slow. */
export class DurationCounts {
  readonly boundsSecs: readonly number[];
  /** One entry more than the bounds: the last entry counts durations above the highest bound. */
  readonly counts: number[];
  sumSecs = 0;

  constructor(boundsSecs: readonly number[]) {
    this.boundsSecs = boundsSecs;
    this.counts = new Array<number>(boundsSecs.length + 1).fill(0);
  }

  observe(secs: number): void {
    const { boundsSecs, counts } = this;
    let at = 0;
    while (at < boundsSecs.length && secs > (boundsSecs[at] as number)) at += 1;
    (counts[at] as number)++;
    this.sumSecs += secs;
  }
}

export const STATUS_CLASSES: readonly number[] = [1, 2, 3, 4, 5];

export class HttpTotals {
  /** Number of HTTP requests sent to tunnels. */
  requests = 0;
  bytesToClient = 0;
  bytesToVisitor = 0;
  /** HTTP connections closed because the edge queued more for them than allowed. */
  overruns = 0;
  /** HTTP connections closed because the queues of all visitors together were too large. */
  shed = 0;
  /** Responses to visitors by status class, including error pages of the edge. Entry 0 is unused. */
  readonly responses: number[] = [0, 0, 0, 0, 0, 0];
  readonly whole = new DurationCounts(WHOLE_BUCKETS_SECS);
  readonly edge = new DurationCounts(EDGE_BUCKETS_SECS);

  /** Counts a response when its head is sent to the visitor. `edgeMs` is null if no service was involved. */
  onResponse(status: number, wholeMs: number, edgeMs: number | null): void {
    const statusClass = Math.trunc(status / 100);
    if (statusClass >= 1 && statusClass <= 5) (this.responses[statusClass] as number)++;
    this.whole.observe(wholeMs / 1000);
    if (edgeMs !== null) this.edge.observe(edgeMs / 1000);
  }
}
