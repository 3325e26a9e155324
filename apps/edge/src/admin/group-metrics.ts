// Metrics of groups: receives group events, and computes samples when scraped.

import { type ProbeKind } from '@tunnel/rules/tunnels';
import type { Clock, Metrics, Sample } from '@tunnel/runtime';
import type { GroupWatcher } from '../routing/groups.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { type TunnelGroup } from '../routing/tunnel-group.rules.ts';
import { GroupSeries, type GroupSeriesValues } from './group-series.rules.ts';

/** Time for which the metrics of an ended group are kept. A group that returns within this time continues its counters. */
export const GROUP_SERIES_KEPT_MS = 300_000;
/** Maximum number of ended groups with kept metrics. The metrics of the longest ended group are dropped first. */
const GROUP_SERIES_KEPT_MAX = 10_000;

type Group = TunnelGroup<Tunnel>;

export class GroupMetrics implements GroupWatcher {
  readonly #clock: Clock;
  readonly #series = new GroupSeries<Group>({
    keptMs: GROUP_SERIES_KEPT_MS,
    keptMax: GROUP_SERIES_KEPT_MAX,
    dispatchesOf: (group) => group.tally({ kind: 'operator' }).totalDispatches,
  });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  groupAdded(group: Group): void {
    this.#series.groupAdded(group, this.#clock.monotonic());
  }

  groupRemoved(group: Group): void {
    this.#series.groupRemoved(group, this.#clock.monotonic());
  }

  memberJoined(group: Group, { health }: Tunnel): void {
    this.#series.memberJoined(group, health.kind ?? 'none');
  }

  failureReported(group: Group, kind: ProbeKind | 'none'): void {
    this.#series.failureReported(group, kind);
  }

  addTo(metrics: Metrics, region: string): void {
    const read = (samplesOf: (values: GroupSeriesValues) => Sample[]) => () =>
      this.#series.read(this.#clock.monotonic()).flatMap(samplesOf);
    metrics.seriesOf(
      'tunnel_group_members',
      'Group members, by health',
      'gauge',
      read(({ group, healthy, unhealthy }) => [
        { labels: { group, region, healthy: 'true' }, value: healthy },
        { labels: { group, region, healthy: 'false' }, value: unhealthy },
      ]),
    );
    metrics.seriesOf(
      'tunnel_group_dispatches_total',
      'Public connections assigned to group members',
      'counter',
      read(({ group, dispatches }) => [{ labels: { group, region }, value: dispatches }]),
    );
    metrics.seriesOf(
      'tunnel_group_health_failures_total',
      'Reports from members about an unhealthy local service, by type of health check',
      'counter',
      read(({ group, failures }) => [...failures].map(([kind, value]) => ({ labels: { group, region, kind }, value }))),
    );
  }
}
