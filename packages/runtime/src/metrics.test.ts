import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';

test('counters, gauges and histograms appear in the text format', async () => {
  const metrics = createMetrics();
  metrics.counter('tunnel_requests_total', 'Requests.').inc(3);
  metrics.counter('tunnel_refusals_total', 'Refusals.', ['code']).inc({ code: 'X' }, 2);
  metrics.gauge('tunnel_active_sessions', 'Sessions.', [], () => 7);
  metrics.gauge('tunnel_labelled', 'By label.', ['label'], (gauge) => gauge.set({ label: 'a' }, 1));
  metrics.histogram('tunnel_wait_seconds', 'Waits.', [0.1, 1]).observe(0.5);
  const text = await metrics.text();
  expect(text).toContain('tunnel_requests_total 3');
  expect(text).toContain('tunnel_refusals_total{code="X"} 2');
  expect(text).toContain('tunnel_active_sessions 7');
  expect(text).toContain('tunnel_labelled{label="a"} 1');
  expect(text).toContain('tunnel_wait_seconds_bucket{le="1"} 1');
  expect(metrics.contentType).toMatch(/^text\/plain/);
});

test('two registries are independent, and process metrics are opt-in', async () => {
  const one = createMetrics({ processMetrics: true });
  const two = createMetrics();
  one.counter('tunnel_requests_total', 'Requests.').inc();
  two.counter('tunnel_requests_total', 'Requests.');
  expect(await two.text()).toContain('tunnel_requests_total 0');
  expect(await one.text()).toContain('process_resident_memory_bytes');
  expect(await two.text()).not.toContain('process_');
});

test('a histogram from external counts looks like any other histogram', async () => {
  const metrics = createMetrics();
  const counts = { boundsSecs: [0.1, 1], counts: [2, 0, 1], sumSecs: 5.5 };
  metrics.histogramOf('tunnel_there_seconds', 'Elsewhere.', { region: 'r' }, counts);
  const own = metrics.histogram('tunnel_here_seconds', 'Elsewhere.', counts.boundsSecs, ['region']);
  for (const value of [0.05, 0.05, 5.4]) own.observe({ region: 'r' }, value);
  const [there, here] = (await metrics.text()).split('\n\n');
  expect(there?.trim()).toBe(here?.trim().replaceAll('_here_', '_there_'));
});

test('dynamic series are read on every scrape, and a failed read fails the scrape', async () => {
  const metrics = createMetrics();
  let samples = [{ labels: { group: 'a "quoted" one' }, value: 3 }];
  let isBroken = false;
  metrics.seriesOf('tunnel_things_total', 'Things.', 'counter', () => {
    if (isBroken) throw new Error('no');
    return samples;
  });
  expect(await metrics.text()).toBe(
    '# HELP tunnel_things_total Things.\n# TYPE tunnel_things_total counter\ntunnel_things_total{group="a \\"quoted\\" one"} 3\n',
  );
  samples = [];
  expect(await metrics.text()).not.toContain('tunnel_things_total{');
  isBroken = true;
  await expect(metrics.text()).rejects.toThrow('no');
});
