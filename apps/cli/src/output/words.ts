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
  `${publicUrl} -> ${protocol === 'https' ? 'https://' : ''}${localHost}:${localPort}`;

/** Connections of an http tunnel are the edge's to open and to keep: requests are what its owner knows. */
export const countsText = ({ counts }: Tunnel): string => {
  const { requests, open, connections } = counts;
  const visits =
    requests > 0 ? `${requests} ${requests === 1 ? 'request' : 'requests'}` : `${open} open, ${connections} in all`;
  return `${visits}, ${bytesText(counts.bytesIn)} in, ${bytesText(counts.bytesOut)} out`;
};

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
      return [`${event.tunnel.name}: ${routeText(event.tunnel)}`, ...event.tunnel.warnings.map(oneLine)].join('\n  ');
    case 'tunnel-moved':
      return `${event.tunnel.name}: now at ${routeText(event.tunnel)} (was ${event.previousUrl})`;
    default:
      return undefined;
  }
};
