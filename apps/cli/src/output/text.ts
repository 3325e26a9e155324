// A small chart of columns, one for each day, as wide as the terminal lets it be.
import type { Colours } from './colours.ts';

export interface DayValue {
  /** YYYY-MM-DD. */
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

/** Oldest day first. Days that have no room are left out from the beginning, and the title says how many are shown. */
export const chartLines = (title: string, days: readonly DayValue[], { width, colours }: ChartLook): string[] => {
  const top = days.reduce((most, { value }) => Math.max(most, value), 0);
  const axisWidth = Math.max(String(top).length, 1);
  // Two of margin, and the axis with a space before it; the last column of a terminal stays free, some break the line there.
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

/** Whatever was used is seen: it has at least an eighth of a row. */
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
