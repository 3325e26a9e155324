// Rules for group metrics: the label of a group, the start value of its counters, and how long metrics are kept after the group has
// ended. A scraper interprets a falling counter as a restart, so the next group with the same label continues the counters.
import { type GroupProtocol, TUNNEL_PROTOCOLS } from '@tunnel/rules/tunnels';

type SeriesKind = 'tcp' | 'http' | 'none';

export interface SeriesGroup {
  readonly protocol: GroupProtocol;
  readonly name: string;
  readonly label: string;
  readonly keyHash: string;
  readonly memberCount: number;
  readonly healthyCount: number;
}

interface GroupSeriesOptions<G extends SeriesGroup> {
  /** Time in milliseconds for which the series of an ended group are kept. */
  readonly keptMs: number;
  /** Maximum number of ended groups with kept series. The series of the longest ended group are dropped first. */
  readonly keptMax: number;
  /** Returns the number of connections dispatched by a group since the group began. */
  readonly dispatchesOf: (group: G) => number;
}

/** Values of all series with the same group label at a point in time. */
export interface GroupSeriesValues {
  readonly group: string;
  readonly healthy: number;
  readonly unhealthy: number;
  readonly dispatches: number;
  readonly failures: ReadonlyMap<SeriesKind, number>;
}

interface Series<G> {
  readonly label: string;
  identity: string;
  /** Group that updates the series. Null if the group has ended. */
  group: G | null;
  removedAt: number;
  /** Number of dispatched connections counted under the label before the current group began. */
  dispatchesBefore: number;
  dispatches: number;
  readonly failures: Map<SeriesKind, number>;
}

export class GroupSeries<G extends SeriesGroup> {
  readonly #options: GroupSeriesOptions<G>;
  readonly #byLabel = new Map<string, Series<G>>();
  readonly #byGroup = new Map<G, Series<G>>();
  /** Series of ended groups, by the identity of the last group. Ordered by end time, longest ended first. */
  readonly #ended = new Map<string, Series<G>>();

  constructor(options: GroupSeriesOptions<G>) {
    this.#options = options;
  }

  groupAdded(group: G, now: number): void {
    this.#expire(now);
    const identity = identityOf(group);
    const series = this.#ended.get(identity) ?? this.#seriesAt(this.#freeLabel(group));
    this.#ended.delete(series.identity);
    series.identity = identity;
    series.group = group;
    series.dispatchesBefore = series.dispatches;
    this.#byGroup.set(group, series);
  }

  groupRemoved(group: G, now: number): void {
    const series = this.#byGroup.get(group);
    if (series === undefined) return;
    this.#catchUp(series);
    this.#byGroup.delete(group);
    series.group = null;
    series.removedAt = now;
    const earlier = this.#ended.get(series.identity);
    if (earlier !== undefined) this.#drop(earlier);
    this.#ended.set(series.identity, series);
    this.#expire(now);
  }

  /** Starts the failure counter for a member's kind of health check at 0, so that the first failure is visible as an increase. */
  memberJoined(group: G, kind: SeriesKind): void {
    this.#count(group, kind, 0);
  }

  failureReported(group: G, kind: SeriesKind): void {
    this.#count(group, kind, 1);
  }

  read(now: number): GroupSeriesValues[] {
    this.#expire(now);
    return [...this.#byLabel.values()].map((series) => {
      this.#catchUp(series);
      const { memberCount = 0, healthyCount = 0 } = series.group ?? {};
      return {
        group: series.label,
        healthy: healthyCount,
        unhealthy: memberCount - healthyCount,
        dispatches: series.dispatches,
        failures: series.failures,
      };
    });
  }

  #count(group: G, kind: SeriesKind, failures: number): void {
    const counts = this.#byGroup.get(group)?.failures;
    counts?.set(kind, (counts.get(kind) ?? 0) + failures);
  }

  #catchUp(series: Series<G>): void {
    if (series.group === null) return;
    const now = series.dispatchesBefore + this.#options.dispatchesOf(series.group);
    series.dispatches = Math.max(series.dispatches, now);
  }

  #seriesAt(label: string): Series<G> {
    const known = this.#byLabel.get(label);
    if (known !== undefined) return known;
    const series: Series<G> = {
      label,
      identity: '',
      group: null,
      removedAt: 0,
      dispatchesBefore: 0,
      dispatches: 0,
      failures: new Map(),
    };
    this.#byLabel.set(label, series);
    return series;
  }

  /**
   * Returns the first label that no living group uses. Numbered labels are needed if a group kept its label but returned at another
   * endpoint.
   */
  #freeLabel({ name, label, protocol }: G): string {
    const candidates = [name, `${name}@${label}`, `${name}@${protocol}:${label}`];
    const isFree = (wanted: string): boolean => (this.#byLabel.get(wanted)?.group ?? null) === null;
    for (let n = 2; !candidates.some(isFree); n += 1) candidates.push(`${name}@${protocol}:${label}:${n}`);
    return candidates.find(isFree) ?? name;
  }

  #expire(now: number): void {
    const { keptMs, keptMax } = this.#options;
    for (const series of this.#ended.values()) {
      if (now - series.removedAt < keptMs && this.#ended.size <= keptMax) return;
      this.#drop(series);
    }
  }

  #drop({ identity, label }: Series<G>): void {
    this.#ended.delete(identity);
    this.#byLabel.delete(label);
  }
}

/**
 * Identity by which a returning group is recognized: the subdomain, or the group name for protocols with ports, because the port can
 * differ.
 */
const identityOf = ({ protocol, name, label, keyHash }: SeriesGroup): string =>
  JSON.stringify([protocol, TUNNEL_PROTOCOLS[protocol].endpoint.kind === 'port' ? name : label, keyHash]);
