// The dashboards and rules of deploy/monitoring: their queries, the series that they name, and the panels that are empty without an event.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../../scripts/lib/paths.mjs';

export const MONITORING = join(ROOT, 'deploy/monitoring');
export const DASHBOARDS = ['edge', 'platform', 'account'];

/** Panels that can be empty in a healthy run, with the event that fills them. */
export const EVENTS = {
  'edge: Internal errors': 'a bug in the edge',
  'platform: MCP calls': 'a call of an MCP client',
  'platform: Certificate orders in the last hour': 'a server with [acme] enabled',
  'platform: Overdue certificate': 'a server with [acme] enabled',
  'account: Limits of accounts': 'an account that reaches its limit of connections or ports',
  'account: Failed health checks': 'a member of a group with an unhealthy local service',
};

/** @returns {{ title: string, uid: string, panels: { id: number, type: string, title: string, description: string, gridPos: object, fieldConfig: { defaults: { unit: string } }, targets: { expr: string, legendFormat: string }[] }[], templating: { list: object[] } }} */
export const readDashboard = (name) => JSON.parse(readFileSync(join(MONITORING, `grafana/${name}.json`), 'utf8'));

/** The names of series in PromQL, rules or text. Label values do not count. */
export const seriesIn = (text) =>
  new Set(text.replaceAll(/"[^"]*"/g, '""').match(/\b(?:tunnel|process|nodejs)_[a-z0-9_]+/g) ?? []);

/** The series that only panels of EVENTS name. */
export function seriesOfEvents() {
  const panels = DASHBOARDS.flatMap((name) =>
    readDashboard(name).panels.map((panel) => ({ panel, isEvent: `${name}: ${panel.title}` in EVENTS })),
  );
  const namedBy = (isEvent) =>
    panels.filter((one) => one.isEvent === isEvent).flatMap(({ panel }) => panel.targets.map(({ expr }) => expr));
  const others = seriesIn(namedBy(false).join('\n'));
  return [...seriesIn(namedBy(true).join('\n'))].filter((name) => !others.has(name));
}

/** The series by which a dashboard lists its instances. */
export function instanceSeries({ templating }) {
  const { definition } = templating.list.find(({ name }) => name === 'instance');
  return /^label_values\((\w+), instance\)$/.exec(definition)[1];
}

/** A query with values in place of Grafana's variables. */
export const withVariables = (expr, { instances, rateInterval }) =>
  expr.replaceAll('$instance', instances.join('|')).replaceAll('$__rate_interval', rateInterval);
