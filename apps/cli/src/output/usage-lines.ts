// Usage in lines for people: sums, days as charts or as a list, and the last tunnels.
import { SUMMARY_DAYS, type TunnelLogEntry, type UsageChartPoint, type UsageSummary } from '@tunnel/contract';
import { oneLine } from '../problem-report.ts';
import { chartLines } from './bar-chart.ts';
import type { Colours } from './colours.ts';
import { columns, counted, momentText } from './columns.ts';
import { cutVisible } from './cut-visible.ts';
import { bytesText } from './words.ts';

export interface Usage {
  readonly summary: UsageSummary;
  readonly chart: readonly UsageChartPoint[];
  readonly tunnels: readonly TunnelLogEntry[];
}

export interface UsageLook {
  /** null: no terminal, so a list that can be searched stands for the charts. */
  readonly width: number | null;
  readonly colours: Colours;
}

export const usageLines = ({ summary, chart, tunnels }: Usage, { width, colours }: UsageLook): string[] => {
  const days = width === null ? dayList(chart) : dayCharts(chart, width, colours);
  const lines = [...summaryLines(summary, colours), '', ...days, '', ...tunnelLines(tunnels, colours)];
  return width === null ? lines : lines.map((line) => cutVisible(line, Math.max(20, width - 1)));
};

const summaryLines = (summary: UsageSummary, colours: Colours): string[] => {
  const { active_tunnels: open, tunnel_limit: limit } = summary;
  const tunnels = limit === null ? `${counted(open, 'tunnel', 'tunnels')} open` : `${open} of ${limit} tunnels open`;
  const isFull = limit !== null && open >= limit;
  return [
    `${colours.bold(`plan ${oneLine(summary.plan)}`)}: ${isFull ? colours.yellow(tunnels) : tunnels}`,
    `in ${SUMMARY_DAYS} days: ${[
      counted(summary.total_tunnels_30d, 'tunnel', 'tunnels'),
      counted(summary.total_requests_30d, 'request', 'requests'),
      bytesText(summary.total_bytes_30d),
    ].join(', ')}`,
  ];
};

const dayCharts = (chart: readonly UsageChartPoint[], width: number, colours: Colours): string[] => {
  const valuesOf = (key: 'requests' | 'tunnels') => chart.map((point) => ({ date: point.date, value: point[key] }));
  return [
    ...chartLines('requests a day', valuesOf('requests'), { width, colours }),
    '',
    ...chartLines('tunnels a day', valuesOf('tunnels'), { width, colours }),
  ];
};

const dayList = (chart: readonly UsageChartPoint[]): string[] => [
  'days (UTC)',
  ...columns(
    chart.map(({ date, requests, tunnels }) => [
      date,
      counted(requests, 'request', 'requests'),
      counted(tunnels, 'tunnel', 'tunnels'),
    ]),
  ),
];

const tunnelLines = (tunnels: readonly TunnelLogEntry[], colours: Colours): string[] => {
  if (tunnels.length === 0) return ['no tunnels yet'];
  const lines = columns(tunnels.map(tunnelCells));
  return ['last tunnels', ...lines.map((line, at) => (isOpen(tunnels[at]) ? colours.green(line) : line))];
};

const isOpen = (tunnel: TunnelLogEntry | undefined): boolean => tunnel?.unregistered_at === null;

const tunnelCells = (tunnel: TunnelLogEntry): string[] => [
  tunnel.protocol,
  oneLine(tunnel.label),
  momentText(tunnel.registered_at),
  tunnel.unregistered_at === null ? 'open' : `to ${momentText(tunnel.unregistered_at)}`,
  visitsText(tunnel),
  bytesText(tunnel.bytes_proxied),
  oneLine(tunnel.region_id ?? ''),
];

const visitsText = ({ protocol, request_count: count }: TunnelLogEntry): string =>
  protocol === 'tcp' ? counted(count, 'connection', 'connections') : counted(count, 'request', 'requests');
