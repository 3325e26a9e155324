// Building blocks of lines for people: colors, columns, lines cut to the terminal's width, money, and a small chart.
import pc from 'picocolors';
import type { Io } from '../io/io.ts';

export type Colours = ReturnType<typeof pc.createColors>;

/** Returns the color functions for stdout. Colors are used on a terminal, unless NO_COLOR is set. */
export const coloursOf = ({ stdout, env }: Pick<Io, 'stdout' | 'env'>): Colours =>
  pc.createColors(stdout.isTTY === true && (env['NO_COLOR'] ?? '') === '');

/** Aligns the cells of a list in columns. */
export const columns = (rows: readonly (readonly string[])[]): string[] => {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, widthOfText(cell))));
  const padded = (cell: string, at: number): string => cell + ' '.repeat((widths[at] ?? 0) - widthOfText(cell));
  return rows.map((row) => `  ${row.map(padded).join('  ')}`.trimEnd());
};

export const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

/** Formats a time in the reader's time zone, to the second. */
export const momentText = (iso: string): string => {
  const time = new Date(iso);
  const two = (part: number): string => String(part).padStart(2, '0');
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-');
  return `${day} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`;
};

const COLOUR = /\u001b\[\d+m/g;
const NARROW = /^[\u0020-\u02ff\u2010-\u2026\u2190-\u21ff\u2500-\u259f]*$/;
/** Matches characters without width: marks on the letter before, and invisible characters. */
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
/** Matches characters of double width: Chinese, Japanese and Korean letters, and emoji. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])$/u;

const widthOfCharacter = (character: string): number => {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
};

/** Returns the width of a text in terminal columns. */
const widthOfText = (text: string): number => {
  if (NARROW.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += widthOfCharacter(character);
  return width;
};

/** Returns the width of a line in terminal columns. Color codes have no width. */
export const visibleLength = (line: string): number => widthOfText(line.replace(COLOUR, ''));

/** Pads a text with spaces to the given number of columns. */
export const padded = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - visibleLength(text)));

/** Returns the beginning of a text that fits into `room` columns. A character is never cut in two. */
const startOf = (text: string, room: number): string => {
  if (NARROW.test(text)) return text.slice(0, Math.max(0, room));
  let left = room;
  let end = 0;
  for (const character of text) {
    left -= widthOfCharacter(character);
    if (left < 0) break;
    end += character.length;
  }
  return text.slice(0, end);
};

/** Cuts a line to its visible width. Color codes have no width, and all color codes are kept, so that the last color ends. */
export const cutVisible = (line: string, width: number): string => {
  if (visibleLength(line) <= width) return line;
  const parts = line.split(/(\u001b\[\d+m)/);
  let room = width - 1;
  let isCut = false;
  const kept = parts.map((part, at) => {
    if (at % 2 === 1) return part;
    const text = isCut ? '' : startOf(part, room);
    room -= widthOfText(text);
    if (isCut || text.length === part.length) return text;
    isCut = true;
    return `${text}…`;
  });
  return kept.join('');
};

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

/**
 * Converts typed dollars to cents. Accepts `20`, `20.5` and `20.50`, with or without a dollar sign, and returns null for any other text.
 * Avoids arithmetic on fractions.
 */
export const parseCents = (text: string): number | null => {
  const parts = /^\$?(\d{1,12})(?:\.(\d{1,2}))?$/.exec(text);
  if (parts === null) return null;
  const [, dollars = '0', rest = ''] = parts;
  return Number(dollars) * 100 + Number(rest.padEnd(2, '0'));
};

export const dollarsText = (cents: number): string =>
  `$${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;

export interface DayValue {
  /** Date in the form YYYY-MM-DD. */
  readonly date: string;
  readonly value: number;
}

export interface ChartLook {
  readonly width: number;
  readonly colours: Colours;
}

const ROWS = 4;
const EIGHTHS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;
const COLUMN_MAX_WIDTH = 4;

/**
 * Draws a small column chart with one column per day, oldest first, as wide as the terminal allows. Without room for all days, the oldest
 * days are left out, and the title says how many days are shown.
 */
export const chartLines = (title: string, days: readonly DayValue[], { width, colours }: ChartLook): string[] => {
  const top = days.reduce((most, { value }) => Math.max(most, value), 0);
  const axisWidth = Math.max(String(top).length, 1);
  // Reserves two columns of margin, and the axis with a space before it. The last column of a terminal stays free, because some terminals
  // break the line there.
  const room = Math.max(1, width - axisWidth - 5);
  const shown = days.slice(-room);
  const columnWidth = Math.max(1, Math.min(COLUMN_MAX_WIDTH, Math.floor(room / Math.max(1, shown.length))));
  const axis = (label: string): string => `  ${label.padStart(axisWidth)} `;
  const rows = Array.from({ length: ROWS }, (_, at) => {
    const row = ROWS - 1 - at;
    const bars = shown.map(({ value }) => barCell(value, top, row, columnWidth)).join('');
    return `${axis(at === 0 ? String(top) : '')}│${colours.cyan(bars.trimEnd())}`.trimEnd();
  });
  const chartWidth = shown.length * columnWidth;
  return [
    `${title}, ${shown.length === 1 ? 'last day' : `last ${shown.length} days`}`,
    ...rows,
    `${axis('0')}└${'─'.repeat(chartWidth)}`,
    `${axis('')} ${colours.dim(dateLine(shown, chartWidth))}`,
  ];
};

/** Draws one row of a day's column. Any usage is at least an eighth of a row high. */
const barCell = (value: number, top: number, row: number, columnWidth: number): string => {
  const eighths = value === 0 ? 0 : Math.max(1, Math.round((value / top) * ROWS * 8));
  const here = Math.max(0, Math.min(8, eighths - row * 8));
  const block = EIGHTHS[here] ?? ' ';
  return columnWidth === 1 ? block : `${block.repeat(columnWidth - 1)} `;
};

const dateLine = (days: readonly DayValue[], width: number): string => {
  const first = (days[0]?.date ?? '').slice(5);
  const last = (days.at(-1)?.date ?? '').slice(5);
  return days.length < 2 || width < first.length + last.length + 1 ? last : first + last.padStart(width - first.length);
};
