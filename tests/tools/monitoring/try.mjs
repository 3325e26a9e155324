// The rules and dashboards of deploy/monitoring with a real Prometheus and a real stack under traffic: npm run try:monitoring
// Prometheus comes from Debian's package, unpacked into .cache, and listens on loopback.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { missingPrograms } from '../lib/debian.mjs';
import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import {
  DASHBOARDS,
  EVENTS,
  instanceSeries,
  readDashboard,
  seriesIn,
  seriesOfEvents,
  withVariables,
} from './lib/dashboards.mjs';
import { drawDashboard } from './lib/picture.mjs';
import { Prometheus, promtool } from './lib/prometheus.mjs';

const USAGE = `usage: npm run try:monitoring [-- [--quick] [--docs]]
Checks the alert rules with promtool, and evaluates every query of every dashboard on a stack under traffic for two minutes. Then kills the
platform, and expects alerts. --quick: 40 seconds of traffic. --docs: draws the pictures of docs/monitoring.md from the recorded data.`;

const SCRAPE_SECS = 2;
const RATE_INTERVAL = '20s';
/** Time after the first scrape until rates over RATE_INTERVAL have values. */
const WARM_UP_SECS = 20;
const ALERT_PATIENCE = { timeoutMs: 60_000, everyMs: 500 };

function checkFiles(check) {
  for (const args of [
    ['check', 'config', 'prometheus.yml'],
    ['check', 'rules', 'alerts.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ]) {
    const { isRight, output } = promtool(...args);
    check(isRight, `promtool ${args.join(' ')}${isRight ? '' : `: ${output}`}`);
  }
}

const isNumber = ({ value: [, value] }) => Number.isFinite(Number(value));

/** Evaluates every query of a dashboard as Grafana would. Returns the panels with the variables filled in. */
async function checkDashboard(prometheus, name, check) {
  const dashboard = readDashboard(name);
  const listed = await prometheus.query(instanceSeries(dashboard));
  const instances = [...new Set(listed.map(({ metric }) => metric.instance))];
  const panels = [];
  let withData = 0;
  for (const panel of dashboard.panels) {
    const targets = panel.targets.map((target) => ({
      ...target,
      expr: withVariables(target.expr, { instances, rateInterval: RATE_INTERVAL }),
    }));
    const event = EVENTS[`${name}: ${panel.title}`];
    for (const { expr } of targets) {
      const hasData = (await prometheus.query(expr)).some(isNumber);
      if (hasData) withData += 1;
      if (!hasData && event === undefined) check(false, `${name}: "${panel.title}" has data: ${expr}`);
    }
    panels.push({ panel, targets, event });
  }
  check(
    withData > 0,
    `${name}: ${dashboard.panels.length} panels, ${withData} queries with data, instances ${instances}`,
  );
  return { dashboard, panels };
}

/** Every series of rules and dashboards is stored, except series that begin with an event. */
async function checkSeries(prometheus, check) {
  const texts = DASHBOARDS.map((name) =>
    readDashboard(name).panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  );
  const rules = (await prometheus.rules()).map(({ query }) => query);
  const named = seriesIn([...texts.flat(), ...rules].join('\n'));
  const stored = new Set(await prometheus.names());
  const missing = [...named].filter((series) => !stored.has(series));
  const unknown = missing.filter((series) => !seriesOfEvents().includes(series));
  check(unknown.length === 0, `${named.size} named series, missing: ${unknown}; only after an event: ${missing}`);
}

/** No alert fires in a healthy run. An alert that waits for its time would fire in a longer run. */
async function checkSilence(prometheus, check) {
  const rules = await prometheus.rules();
  const broken = rules.filter(({ health }) => health !== 'ok').map(({ name, lastError }) => `${name} ${lastError}`);
  check(rules.length > 0 && broken.length === 0, `${rules.length} rules are evaluated ${broken}`);
  const waiting = rules.filter(({ state }) => state !== 'inactive').map(({ name, state }) => `${name} ${state}`);
  check(waiting.length === 0, `no alert fires or waits at the end: ${waiting}`);
  const fired = await prometheus.query('count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[10m]))');
  check(fired.length === 0, `no alert has fired: ${fired.map(({ metric }) => metric.alertname)}`);
}

async function checkTargets(prometheus, check) {
  const targets = await prometheus.targets();
  const down = targets
    .filter(({ health }) => health !== 'up')
    .map(({ scrapeUrl, lastError }) => `${scrapeUrl} ${lastError}`);
  check(targets.length === 2 && down.length === 0, `both jobs of prometheus.yml are scraped ${down}`);
}

/** The alerts of a real crash, and of a platform that is stopped. */
async function checkAlerts(prometheus, stage, check) {
  const stateOf = async (name) => (await prometheus.rules()).find((rule) => rule.name === name)?.state;
  const reaches = (name, states) =>
    until(name, async () => states.includes(await stateOf(name)), ALERT_PATIENCE).then(
      () => true,
      () => false,
    );
  stage.kill('platform');
  check(await reaches('PartRestarted', ['firing']), 'PartRestarted fires after a SIGKILL of the platform');
  await stage.platform.stop();
  check(
    await reaches('PlatformDown', ['pending', 'firing']),
    'PlatformDown waits after a separate platform has stopped',
  );
}

async function drawPictures(prometheus, dashboards, { start, end, say }) {
  const step = Math.max(SCRAPE_SECS, Math.round((end - start) / 60));
  const date = new Date(end * 1000).toISOString().slice(0, 10);
  for (const [name, { dashboard, panels }] of Object.entries(dashboards)) {
    const drawn = [];
    for (const { panel, targets, event } of panels) {
      const series = [];
      for (const { expr, legendFormat } of targets)
        for (const one of await prometheus.range(expr, { start, end, step })) series.push({ ...one, legendFormat });
      drawn.push({ panel, series, empty: event && `no data before ${event}` });
    }
    const file = join(ROOT, `docs/monitoring-${name}.svg`);
    const subtitle = `${Math.round(end - start)} seconds of a test stack and a separate platform, recorded by Prometheus on ${date}`;
    writeFileSync(file, drawDashboard({ title: dashboard.title, subtitle, start, end, panels: drawn }));
    say(`drew docs/monitoring-${name}.svg`);
  }
}

async function watch({ stage, prometheus, quick, docs, say, check }) {
  const { listensOn } = prometheus;
  check(listensOn.length === 1 && listensOn[0] === '0100007F', `Prometheus listens on loopback only: ${listensOn}`);
  stage.begin();
  const secs = quick ? 40 : 120;
  const start = Date.now() / 1000 + WARM_UP_SECS;
  await pause((secs + WARM_UP_SECS) * 1000);
  const end = Date.now() / 1000;
  say(`traffic: ${JSON.stringify(stage.counts)}`);
  check(stage.counts.failed === 0, `every visit was complete; incomplete: ${stage.counts.failed}`);
  const captured = await stage.captured();
  check(captured > 0, `requests are captured: ${captured}`);
  await checkTargets(prometheus, check);
  const dashboards = {};
  for (const name of DASHBOARDS) dashboards[name] = await checkDashboard(prometheus, name, check);
  await checkSeries(prometheus, check);
  await checkSilence(prometheus, check);
  if (docs) await drawPictures(prometheus, dashboards, { start, end, say });
  stage.stopVisitors();
  await checkAlerts(prometheus, stage, check);
  return `${secs} s of traffic`;
}

await runScript(
  { name: 'monitoring', usage: USAGE, options: { quick: false, docs: false }, limitSecs: () => 900 },
  async ({ values: { quick, docs }, say, check }) => {
    const missing = missingPrograms();
    if (missing !== null) {
      process.stdout.write(`skipped: ${missing}\n`);
      return 'nothing was tried';
    }
    checkFiles(check);
    const { Stage } = await loadBundled(new URL('lib/stage.mjs', import.meta.url), 'monitoring-stage');
    const stage = await Stage.open();
    try {
      await stage.backedUp();
      const { edge, separatePlatform: platform } = stage;
      const tokenFile = stage.platform.tokenFile;
      const prometheus = await Prometheus.start({ edge, platform, tokenFile, scrapeSecs: SCRAPE_SECS });
      try {
        return await watch({ stage, prometheus, quick, docs, say, check });
      } finally {
        await prometheus.close();
      }
    } finally {
      await stage.close();
    }
  },
);
