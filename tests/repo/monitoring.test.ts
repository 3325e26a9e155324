// Alert rules, dashboards and their page without Prometheus: names, cases and copies agree. `npm run try:monitoring` evaluates the queries.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { shownProtocol } from '@tunnel/contract';
import { createMetrics } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from './checkout.fixture.ts';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

interface Case {
  readonly input_series: readonly { readonly series: string }[];
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
}

const { DASHBOARDS, EVENTS, instanceSeries, readDashboard, seriesIn } = (await import(
  join(ROOT, 'tests/tools/monitoring/lib/dashboards.mjs')
)) as {
  DASHBOARDS: readonly string[];
  EVENTS: Readonly<Record<string, string>>;
  instanceSeries: (dashboard: Dashboard) => string;
  readDashboard: (name: string) => Dashboard;
  seriesIn: (text: string) => ReadonlySet<string>;
};

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const yaml = <T>(path: string): T => parse(read(path)) as T;
const rules = yaml<{ groups: { rules: Rule[] }[] }>('deploy/monitoring/alerts.yml').groups.flatMap(
  (group) => group.rules,
);
const cases = yaml<{ tests: Case[] }>('deploy/monitoring/alerts.test.yml').tests;
const dashboards = DASHBOARDS.map((name) => ({ name, dashboard: readDashboard(name) }));

const SOURCES = ['apps/edge/src', 'apps/platform/src', 'packages/runtime/src'];

/** Files whose name says that they export metrics. */
const metricsFiles = SOURCES.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /metrics[\w-]*\.ts$/.test(name) && !/\.(?:test|fixture)\.ts$/.test(name))
    .map((name) => `${folder}/${name}`),
);

/** The names of all series that edge and platform export. */
const exportedSeries = async (): Promise<ReadonlySet<string>> => {
  const names = metricsFiles.flatMap((file) => {
    const text = read(file);
    const plain = [...text.matchAll(/['"](tunnel_[a-z0-9_]+)['"]/g)].map(([, name = '']) => name);
    const byProtocol = [...text.matchAll(/`(tunnel_[a-z0-9_]+_)\$\{protocol\}`/g)].map(([, start = '']) => start);
    const histograms = [...text.matchAll(/histogramOf\(\s*'(\w+)'/g)].map(([, name = '']) => name);
    return [
      ...plain,
      ...byProtocol.flatMap((start) => shownProtocol.options.map((protocol) => start + protocol)),
      ...histograms.flatMap((name) => ['bucket', 'sum', 'count'].map((part) => `${name}_${part}`)),
    ];
  });
  const ofProcess = await createMetrics({ processMetrics: true }).text();
  return new Set([...names, ...[...ofProcess.matchAll(/^# TYPE (\w+)/gm)].map(([, name = '']) => name)]);
};

const unknownSeries = async (text: string): Promise<string[]> => {
  const exported = await exportedSeries();
  return [...seriesIn(text)].filter((name) => !exported.has(name));
};

describe('the alert rules', () => {
  it('are the same in the chart', () => {
    expect(read('deploy/helm/hatchway/alerts.yml')).toBe(read('deploy/monitoring/alerts.yml'));
  });

  it('name only series that edge or platform exports', async () => {
    expect(rules.length).toBeGreaterThan(10);
    expect(await unknownSeries(rules.map(({ expr }) => expr).join('\n'))).toEqual([]);
    const inputs = cases.flatMap(({ input_series }) => input_series.map(({ series }) => series));
    expect(await unknownSeries(inputs.join('\n'))).toEqual([]);
    // A name that no file exports is found.
    expect(await unknownSeries('rate(tunnel_no_such_total[5m])')).toEqual(['tunnel_no_such_total']);
  });

  it('have a case that fires and a case that does not', () => {
    const tests = cases.flatMap((one) => one.alert_rule_test);
    for (const fires of [true, false]) {
      const tested = tests
        .filter(({ exp_alerts }) => exp_alerts.length > 0 === fires)
        .map(({ alertname }) => alertname);
      expect([...new Set(tested)].sort()).toEqual(rules.map(({ alert }) => alert).sort());
    }
  });

  it('say how urgent the alert is, what happened, and what to do', () => {
    for (const { alert, labels, annotations } of rules) {
      expect([alert, labels.severity]).toEqual([alert, expect.stringMatching(/^(?:critical|warning)$/)]);
      expect([alert, annotations]).toEqual([
        alert,
        { summary: expect.stringMatching(/\w/), description: expect.stringMatching(/\w/) },
      ]);
    }
  });

  it('name jobs of prometheus.yml, which the chart sets too', () => {
    const jobs = (text: string): string[] => [...new Set(text.match(/hatchway-(?:edge|platform)\b/g))].sort();
    const inRules = jobs(rules.map(({ expr }) => expr.replace('(edge|platform)', 'edge|hatchway-platform')).join('\n'));
    expect(jobs(read('deploy/monitoring/prometheus.yml').replaceAll(/\S*admin-token/g, ''))).toEqual(inRules);
    const template = read('deploy/helm/hatchway/templates/monitoring.yaml');
    const set = [...template.matchAll(/targetLabel: job, replacement: ([\w-]+)/g)].map(([, job = '']) => job);
    expect(set.sort()).toEqual(inRules);
  });
});

describe('the dashboards', () => {
  it('are the files of deploy/monitoring/grafana, each with an id', () => {
    expect(readdirSync(join(ROOT, 'deploy/monitoring/grafana')).sort()).toEqual(
      DASHBOARDS.map((name) => `${name}.json`).sort(),
    );
    expect(dashboards.map(({ dashboard }) => dashboard.uid)).toEqual(DASHBOARDS.map((name) => `hatchway-${name}`));
  });

  it('name only series that edge or platform exports', async () => {
    const queries = dashboards.flatMap(({ dashboard }) => [
      instanceSeries(dashboard),
      ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ]);
    expect(await unknownSeries(queries.join('\n'))).toEqual([]);
  });

  it('describe every panel, and no panel covers another', () => {
    for (const { name, dashboard } of dashboards) {
      const { panels } = dashboard;
      expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
      expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
      const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
      );
      expect([name, cells.filter((cell, n) => cells.indexOf(cell) !== n)]).toEqual([name, []]);
      const incomplete = panels.filter(({ description, targets }) => description.length < 10 || targets.length === 0);
      expect([name, incomplete.map(({ title }) => title)]).toEqual([name, []]);
    }
  });

  it('have the panels that the script lists as empty without an event', () => {
    const titles = dashboards.flatMap(({ name, dashboard }) =>
      dashboard.panels.map(({ title }) => `${name}: ${title}`),
    );
    expect(Object.keys(EVENTS).filter((panel) => !titles.includes(panel))).toEqual([]);
  });
});

describe('docs/monitoring.md', () => {
  const page = read('docs/monitoring.md');

  it('lists every alert', () => {
    const listed = [...page.matchAll(/^\| `([A-Z]\w+)` \|/gm)].map(([, alert]) => alert);
    expect(listed).toEqual(rules.map(({ alert }) => alert));
  });

  it('names only series that edge or platform exports', async () => {
    // `tunnel_active_tunnels_http`, `_tcp`: the page shortens further names.
    expect(await unknownSeries(page)).toEqual([]);
  });

  it('names every series that edge or platform exports', async () => {
    const named = seriesIn(page);
    const own = [...(await exportedSeries())].filter((name) => /^tunnel_(?!.*_(?:bucket|sum|count)$)/.test(name));
    const shortened = (name: string): boolean => page.includes(`\`_${name.split('_').at(-1)}\``);
    expect(own.filter((name) => !named.has(name) && !shortened(name))).toEqual([]);
  });

  it('shows a picture of each dashboard', () => {
    for (const name of DASHBOARDS) {
      expect(page).toContain(`(monitoring-${name}.svg)`);
      expect(read(`docs/monitoring-${name}.svg`)).toContain('<svg');
    }
  });
});
