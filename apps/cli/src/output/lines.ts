// Numbers and moments in the words people read.
import type { StatusEvent, Tunnel } from '@tunnel/client';
import { oneLine } from '../problem-report.ts';

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

export const bytesText = (bytes: number): string => {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
};

export const durationText = (ms: number): string => {
  const seconds = Math.floor(ms / 1000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
};

export const routeText = ({ publicUrl, protocol, localHost, localPort }: Tunnel): string =>
  `${oneLine(publicUrl)} -> ${protocol === 'https' ? 'https://' : ''}${localHost}:${localPort}`;

/** Connections of an http tunnel are the edge's to open and to keep: requests are what its owner knows. */
export const countsText = ({ counts }: Tunnel): string => {
  const { requests, open, connections } = counts;
  const visits =
    requests > 0 ? `${requests} ${requests === 1 ? 'request' : 'requests'}` : `${open} open, ${connections} in all`;
  return `${visits}, ${bytesText(counts.bytesIn)} in, ${bytesText(counts.bytesOut)} out`;
};

type HealthEvent = Extract<StatusEvent, { type: 'health' }>;

/** Of a change; in a block that is always there, `healthWord` is enough. */
const healthText = ({ healthy, reason, consecutiveFailures }: HealthEvent): string =>
  healthy ? 'healthy' : `unhealthy: ${oneLine(reason)} (${consecutiveFailures} in a row)`;

const HEALTH_WORDS = { none: '', unknown: 'not probed yet', healthy: 'healthy', unhealthy: 'unhealthy' } as const;
const HEALTH_MARKS = { none: '', unknown: '?', healthy: '✓', unhealthy: '✗' } as const;

/** Empty where nothing is probed. */
export const healthWord = ({ health }: Tunnel): string => HEALTH_WORDS[health];
export const healthMark = ({ health }: Tunnel): string => HEALTH_MARKS[health];

/** Empty for a tunnel that stands alone. */
export const groupText = ({ group }: Tunnel): string => (group === null ? '' : ` (group ${oneLine(group)})`);

export const inspectorText = (url: string | null): string =>
  url === null ? 'no inspector: all ports 4300 to 4399 of 127.0.0.1 are taken' : `inspector: ${url}`;

/** What is worth a line when it happens; undefined for the rest. */
export const eventLine = (event: StatusEvent): string | undefined => {
  switch (event.type) {
    case 'connected':
      return `connected${event.resumed ? ', session resumed' : ''}`;
    case 'reconnecting': {
      const pause = (event.delayMs / 1000).toFixed(1);
      return `${oneLine(event.reason)}; ${event.planned ? 'connecting' : 'trying'} again in ${pause} s`;
    }
    case 'reconnected':
      return `reconnected${event.resumed ? ', session resumed' : ''}`;
    case 'tunnel-opened':
      return withWarnings(event.tunnel, `${routeText(event.tunnel)}${groupText(event.tunnel)}`);
    case 'tunnel-moved':
      return withWarnings(event.tunnel, `now at ${routeText(event.tunnel)} (was ${oneLine(event.previousUrl)})`);
    case 'health':
      return `${event.tunnel.name}: ${healthText(event)}`;
    default:
      return undefined;
  }
};

/** What the edge has to say about a tunnel that it has opened nevertheless, below the line that says so. */
const withWarnings = ({ name, warnings }: Tunnel, text: string): string =>
  [`${name}: ${text}`, ...warnings.map((warning) => `warning: ${oneLine(warning)}`)].join('\n  ');
