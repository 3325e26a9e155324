import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { chartLines } from './bar-chart.ts';
import { type Usage, usageLines } from './usage-lines.ts';

const PLAIN = pc.createColors(false);

const days = (values: number[]) =>
  values.map((value, at) => ({ date: `2030-01-${String(at + 1).padStart(2, '0')}`, value }));

describe('a chart', () => {
  it('has a column for each day, as high as its share of the highest', () => {
    expect(chartLines('requests a day', days([0, 8, 16, 32, 1]), { width: 18, colours: PLAIN })).toEqual([
      'requests a day, last 5 days',
      '  32 │      █',
      '     │      █',
      '     │    █ █',
      '     │  █ █ █ ▁',
      '   0 └──────────',
      '      01-05',
    ]);
  });

  it('leaves out the oldest days where there is no room, and says so', () => {
    const [title, ...rows] = chartLines('x', days(Array.from({ length: 31 }, (_, at) => at)), {
      width: 20,
      colours: PLAIN,
    });
    expect(title).toBe('x, last 13 days');
    expect(Math.max(...rows.map((row) => row.length))).toBeLessThan(20);
    expect(rows.at(-1)).toBe('      01-19   01-31');
  });

  it.each([[[]], [[0]], [[0, 0]], [[5]]])('stands for %j too', (values) => {
    for (const width of [1, 20, 200]) {
      const lines = chartLines('x', days(values), { width, colours: PLAIN });
      expect(lines.join('\n')).not.toMatch(/NaN|undefined/);
      expect(lines).toHaveLength(7);
    }
  });
});

const USAGE: Usage = {
  summary: {
    active_tunnels: 1,
    total_tunnels_30d: 17,
    total_requests_30d: 1204,
    total_bytes_30d: 48_201_733,
    plan: 'free',
    tunnel_limit: 3,
  },
  chart: [
    { date: '2030-01-01', tunnels: 1, requests: 0, bytes: 0 },
    { date: '2030-01-02', tunnels: 2, requests: 310, bytes: 0 },
  ],
  tunnels: [
    {
      id: 'a',
      tunnel_id: 'tun_a',
      protocol: 'tcp',
      label: '20007',
      registered_at: '2030-01-02T00:00:00.000Z',
      unregistered_at: null,
      region_id: 'local',
      request_count: 1,
      bytes_proxied: 4096,
    },
  ],
};

describe('usage', () => {
  it('is a list that can be searched where there is no terminal', () => {
    const lines = usageLines(USAGE, { width: null, colours: PLAIN });
    expect(lines.slice(0, 6)).toEqual([
      'plan free: 1 of 3 tunnels open',
      'in 30 days: 17 tunnels, 1204 requests, 48.2 MB',
      '',
      'days (UTC)',
      '  2030-01-01  0 requests    1 tunnel',
      '  2030-01-02  310 requests  2 tunnels',
    ]);
    expect(lines.at(-1)).toMatch(/^ {2}tcp {2}20007 {2}2030-.* {2}open {2}1 connection {2}4.1 kB {2}local$/);
  });

  it('has two charts on a terminal, and no line is wider', () => {
    for (const width of [30, 60, 200]) {
      const lines = usageLines(USAGE, { width, colours: PLAIN });
      expect(lines).toContain('requests a day, last 2 days');
      expect(lines).toContain('tunnels a day, last 2 days');
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(width);
    }
  });

  it('says when there is no limit, and when there was no tunnel', () => {
    const summary = { ...USAGE.summary, tunnel_limit: null };
    const lines = usageLines({ ...USAGE, summary, tunnels: [] }, { width: null, colours: PLAIN });
    expect([lines[0], lines.at(-1)]).toEqual(['plan free: 1 tunnel open', 'no tunnels yet']);
  });
});
