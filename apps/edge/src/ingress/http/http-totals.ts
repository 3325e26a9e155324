// What the HTTP ingress has carried since the start, by plain numbers: they change with every request, metrics read them at a scrape.

/** Upper bounds in seconds. The whole: from the first byte of the request's head to the first of the answer's. */
export const WHOLE_BUCKETS_SECS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;
/** The edge's own share is microseconds while all is well: its buckets begin there. */
export const EDGE_BUCKETS_SECS = [
  0.000_05, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
] as const;

/** Counts by bucket, without the search for labels that makes prom-client's own slow. */
export class DurationCounts {
  readonly boundsSecs: readonly number[];
  /** One more than the bounds: the last is what is longer than all of them. */
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
  /** Requests given to tunnels. */
  requests = 0;
  bytesToClient = 0;
  bytesToVisitor = 0;
  /** Connections cut because more of our own waited for them than may. */
  overruns = 0;
  /** Connections cut because all queues together were too large. */
  shed = 0;
  /** Answers to visitors by class; ours, such as error pages, too. [0] is not used. */
  readonly responses: number[] = [0, 0, 0, 0, 0, 0];
  readonly whole = new DurationCounts(WHOLE_BUCKETS_SECS);
  readonly edge = new DurationCounts(EDGE_BUCKETS_SECS);

  /** An answer's head went to a visitor. `edgeMs` null: there was no service that took the rest of the time. */
  onResponse(status: number, wholeMs: number, edgeMs: number | null): void {
    const statusClass = Math.trunc(status / 100);
    if (statusClass >= 1 && statusClass <= 5) (this.responses[statusClass] as number)++;
    this.whole.observe(wholeMs / 1000);
    if (edgeMs !== null) this.edge.observe(edgeMs / 1000);
  }
}
