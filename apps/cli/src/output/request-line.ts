// One request in one line: when, what, how it went and how long it took.
import type { RequestEvent } from '@tunnel/client';
import type pc from 'picocolors';
import { oneLine } from '../problem-report.ts';

export type FinishedRequest = Extract<RequestEvent, { type: 'request-finished' }>;
type Colours = ReturnType<typeof pc.createColors>;

const METHOD_WIDTH = 7;
const DURATION_WIDTH = 8;
const PATH_LEAST = 10;

export interface LineShape {
  /** Of the terminal; undefined: there is none, and nothing is cut or aligned. */
  readonly width?: number;
  /** Whether the tunnel's name is needed to tell requests apart. */
  readonly named: boolean;
  readonly colours?: Colours;
}

export const requestLine = (event: FinishedRequest, { width, named, colours }: LineShape): string => {
  const lead = [clockText(event.at), ...(named ? [oneLine(event.tunnel.name)] : [])].join(' ');
  const marks = [...(event.aborted ? ['aborted'] : []), ...(event.replayOf === null ? [] : ['replay'])];
  const path = oneLine(event.path);
  const status = statusText(event, colours);
  const duration = durationText(event.durationMs);
  if (width === undefined) return [lead, oneLine(event.method), path, status, duration, ...marks].join(' ');
  const method = oneLine(event.method).slice(0, METHOD_WIDTH).padEnd(METHOD_WIDTH);
  const tail = marks.map((mark) => ` ${mark}`).join('');
  const room = Math.max(PATH_LEAST, width - lead.length - METHOD_WIDTH - DURATION_WIDTH - tail.length - 7);
  const dim = colours?.dim ?? String;
  return `${dim(lead)} ${method} ${cut(path, room).padEnd(room)} ${status} ${duration.padStart(DURATION_WIDTH)}${tail}`;
};

/** The end of a path tells more than its middle; of a query, less. */
const cut = (text: string, room: number): string => (text.length <= room ? text : `${text.slice(0, room - 1)}…`);

const clockText = (at: number): string => {
  const time = new Date(at);
  const parts = [time.getHours(), time.getMinutes(), time.getSeconds()];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
};

export const durationText = (ms: number): string => {
  if (ms < 999.5) return `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return ms < 599_950 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
};

const statusText = ({ status, aborted }: FinishedRequest, colours: Colours | undefined): string => {
  const text = status === null ? '---' : String(status);
  if (colours === undefined) return text;
  if (status === null || aborted || status >= 500) return colours.red(text);
  if (status >= 400) return colours.yellow(text);
  return status >= 300 || status < 200 ? colours.cyan(text) : colours.green(text);
};
