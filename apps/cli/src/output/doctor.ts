// Findings of `tunnel doctor` for people: the path from the local service to the visitor with a mark on each hop, all findings, and the
// first problem to fix.
import {
  type Check,
  type CheckId,
  type CheckStatus,
  type Diagnosis,
  type Hop,
  statusOfHop,
  titleOf,
} from '@tunnel/client';
import type { Io } from '../io/io.ts';
import { type Colours, coloursOf } from './text.ts';

interface Signs {
  readonly marks: Readonly<Record<CheckStatus, string>>;
  readonly line: string;
}

const DRAWN: Signs = { marks: { ok: '✓', warn: '!', fail: '✗', skip: '·' }, line: ' ── ' };
/** Marks in ASCII, for a locale that cannot show Unicode marks. */
const TYPED: Signs = { marks: { ok: 'ok', warn: 'warn', fail: 'FAIL', skip: '-' }, line: ' -- ' };

const COLOUR_OF: Readonly<Record<CheckStatus, 'green' | 'yellow' | 'red' | 'dim'>> = {
  ok: 'green',
  warn: 'yellow',
  fail: 'red',
  skip: 'dim',
};

const HOPS: readonly (readonly [hop: Hop, name: string])[] = [
  ['service', 'local services'],
  ['machine', 'this computer'],
  ['proxy', 'proxy'],
  ['network', 'network'],
  ['edge', 'edge'],
];

const NARROW = 80;

/** Returns true for a UTF-8 locale. The first variable that is set decides, as in the C library. */
const speaksUtf8 = (env: Io['env']): boolean => {
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find((value) => (value ?? '') !== '') ?? '';
  return /utf-?8/i.test(locale);
};

type TextIo = Pick<Io, 'stdout' | 'env'>;

export interface DiagnosisRun {
  readonly server: string;
  /** True if a signal stopped the diagnosis before all checks were done. */
  readonly isStopped: boolean;
}

export const diagnosisText = (
  { checks, first, ok }: Diagnosis,
  { server, isStopped }: DiagnosisRun,
  io: TextIo,
): string => {
  const colours = coloursOf(io);
  const signs = speaksUtf8(io.env) ? DRAWN : TYPED;
  const mark = (status: CheckStatus): string => colours[COLOUR_OF[status]](signs.marks[status]);
  const lines = [
    ...picture(checks, signs, mark, io),
    '',
    ...table(checks, signs, mark, colours),
    '',
    ...(first === null
      ? [isStopped ? 'Stopped before all checks were done.' : `No problems found on the path to ${server}.`]
      : [
          `${ok ? 'Can be improved' : 'Fix this first'}: ${first.title}: ${first.detail}`,
          `  ${colours.bold(first.hint)}`,
        ]),
  ];
  return `${lines.join('\n')}\n`;
};

/** Draws the path in one line if the terminal is wide enough, otherwise with one hop per line. */
const picture = (
  checks: readonly Check[],
  signs: Signs,
  mark: (status: CheckStatus) => string,
  io: TextIo,
): string[] => {
  const hops = HOPS.map(([hop, name]) => ({ hop, name, status: statusOfHop(hop, checks) }))
    // Without a proxy, the path has no proxy hop.
    .filter(({ hop, status }) => hop !== 'proxy' || status !== 'skip');
  const parts = [...hops.map(({ name, status }) => `${name} ${mark(status)}`), 'visitors'];
  const width = hops.reduce((sum, { name, status }) => sum + name.length + signs.marks[status].length + 5, 10);
  const room = io.stdout.isTTY === true ? io.stdout.columns || NARROW : Number.POSITIVE_INFINITY;
  return width <= room ? [`  ${parts.join(signs.line)}`] : parts.map((part) => `  ${part}`);
};

const table = (
  checks: readonly Check[],
  signs: Signs,
  mark: (status: CheckStatus) => string,
  colours: Colours,
): string[] => {
  const markWidth = Math.max(...Object.values(signs.marks).map(({ length }) => length));
  const titleWidth = Math.max(...checks.map(({ title }) => title.length));
  return checks.map(({ status, title, detail }) => {
    const padding = ' '.repeat(markWidth - signs.marks[status].length);
    const text = status === 'skip' ? colours.dim(detail) : detail;
    return `  ${mark(status)}${padding}  ${title.padEnd(titleWidth)}  ${text}`;
  });
};

/** A progress line that is overwritten in place on a terminal. Prints nothing without a terminal. */
export class Progress {
  readonly #stream: Io['stderr'];
  #shown = false;

  constructor(io: Pick<Io, 'stderr'>) {
    this.#stream = io.stderr;
  }

  show(id: CheckId, done: number, total: number): void {
    if (this.#stream.isTTY !== true) return;
    this.#shown = true;
    this.#stream.write(`\r\u001b[K${done + 1}/${total} ${titleOf(id)} ...`);
  }

  clear(): void {
    if (this.#shown) this.#stream.write('\r\u001b[K');
    this.#shown = false;
  }
}
