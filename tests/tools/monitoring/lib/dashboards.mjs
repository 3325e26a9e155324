// The dashboards and rules of deploy/monitoring: their queries, and the series that they name.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../../../scripts/lib/paths.mjs';

const MONITORING = join(ROOT, 'deploy/monitoring');
export const DASHBOARDS = ['edge', 'platform', 'account'];

/** @returns {{ title: string, uid: string, panels: { id: number, type: string, title: string, description: string, gridPos: object, fieldConfig: { defaults: { unit: string } }, targets: { expr: string, legendFormat: string }[] }[], templating: { list: object[] } }} */
export const readDashboard = (name) => JSON.parse(readFileSync(join(MONITORING, `grafana/${name}.json`), 'utf8'));

/** The names of series in PromQL, rules or text. Label values do not count. */
export const seriesIn = (text) =>
  new Set(text.replaceAll(/"[^"]*"/g, '""').match(/\b(?:tunnel|process|nodejs)_[a-z0-9_]+/g) ?? []);

/** The series by which a dashboard lists its instances. */
export function instanceSeries({ templating }) {
  const { definition } = templating.list.find(({ name }) => name === 'instance');
  return /^label_values\((\w+), instance\)$/.exec(definition)[1];
}
