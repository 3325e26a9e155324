// Who looks at the groups of an edge: the event streams, the metrics, and the alerts that leave the house.
import { showProtocol } from '@tunnel/contract';
import { mayAlertPrivate } from '@tunnel/core';
import type { Clock, Logger, ServerConfig } from '@tunnel/runtime';
import { GroupFeed } from './admin/group-feed.ts';
import { GroupMetrics } from './admin/group-metrics.ts';
import { AlertSender } from './alerts/alert-sender.ts';
import type { GroupWatcher, ZeroHealthy } from './routing/groups.ts';

export interface GroupWatchDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
}

export class GroupWatch {
  readonly feed: GroupFeed;
  readonly metrics: GroupMetrics;
  readonly alerts: AlertSender;
  readonly watchers: readonly GroupWatcher[];

  constructor({ server, region, load_balancing }: ServerConfig, { clock, logger, version }: GroupWatchDeps) {
    this.feed = new GroupFeed({ regionId: region.id, clock });
    this.metrics = new GroupMetrics(clock);
    this.alerts = new AlertSender({
      operatorUrl: load_balancing.alert_webhook_url,
      allowPrivate: mayAlertPrivate(load_balancing.alert_allow_private, server.host),
      secret: load_balancing.alert_secret,
      regionId: region.id,
      version,
      clock,
      logger,
    });
    const alarm: GroupWatcher = { zeroHealthy: (event) => this.#sendAlert(event) };
    this.watchers = [this.feed, this.metrics, alarm];
  }

  /** What a client should be told of its alert URL; null: nothing. */
  readonly checkAlertUrl = (url: string, withinMs: number): Promise<string | null> =>
    this.alerts.urls.checkAtRegistration(url, withinMs);

  #sendAlert({ group, urls, memberCount, at }: ZeroHealthy): void {
    this.alerts.send({
      protocol: showProtocol(group.protocol),
      label: group.label,
      groupName: group.name,
      keyHashShort: group.keyHashShort,
      memberCount,
      at,
      tenantUrls: urls,
    });
  }
}
