// Connects alerts to the edge: creates the alert sender from the configuration, and watches groups for the loss of the last healthy
// member.

import type { ServerConfig } from '@tunnel/config/server';
import { showProtocol } from '@tunnel/contract';
import { decidePrivateAlerts } from '@tunnel/rules/net';
import { ownerKey } from '@tunnel/rules/tunnels';
import type { Logger } from '@tunnel/runtime';
import type { GroupWatcher } from '../routing/groups.ts';
import { AlertSender, type AlertSenderOptions } from './alert-sender.ts';
import type { LastAlerts } from './last-alerts.ts';

/** Decides whether tenants' alerts can go to private addresses. The result names the config key behind the decision. */
export const decidePrivateAlertsFor = ({
  server,
  platform,
  load_balancing,
}: ServerConfig): ReturnType<typeof decidePrivateAlerts> =>
  decidePrivateAlerts(load_balancing.alert_allow_private, {
    host: server.host,
    domain: server.domain,
    publicHost: new URL(platform.public_url).hostname,
    trustedProxies: [...server.trusted_proxies, ...platform.trusted_proxies],
  });

/** Logs at startup whether tenants' alerts can go to private addresses, so that the operator need not guess the effect of "auto". */
export const logPrivateAlerts = (config: ServerConfig, logger: Logger): void => {
  if (!config.load_balancing.enabled) return;
  const { allowed, because } = decidePrivateAlertsFor(config);
  logger.info({ allowed, because }, 'alert webhooks to private addresses');
};

export const createAlertSender = (
  config: ServerConfig,
  {
    version,
    clock,
    logger,
    rates,
  }: Pick<AlertSenderOptions, 'clock' | 'logger' | 'rates'> & { readonly version: string },
): AlertSender =>
  new AlertSender({
    operatorUrl: config.load_balancing.alert_webhook_url,
    allowPrivate: decidePrivateAlertsFor(config).allowed,
    secret: config.load_balancing.alert_secret,
    regionId: config.region.id,
    version,
    clock,
    logger,
    rates,
  });

export const groupAlertWatcher = (alerts: AlertSender, lastAlerts: LastAlerts): GroupWatcher => ({
  zeroHealthy: ({ group, owner, urls, memberCount, at }) => {
    const { groupId, protocol, label, name: groupName, keyHashShort } = group;
    alerts.send({
      groupId,
      label,
      groupName,
      keyHashShort,
      memberCount,
      at,
      account: ownerKey(owner),
      protocol: showProtocol(protocol),
      tenantUrls: urls,
      onEnd: lastAlerts.begin(group, at),
    });
  },
});
