// Draws a chart of days with uPlot: bars, a few quiet lines, and the values of the day under the pointer.
import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import { utcDayText } from './format.ts';

/** As the classes of the canvas and of its skeleton say it, so that nothing jumps. */
const CHART_HEIGHT_PX = 180;

export interface ChartPoint {
  /** A UTC day, "2030-01-31". */
  readonly date: string;
  readonly value: number;
}

export interface ChartProps {
  /** What is counted, and over which time. */
  readonly label: string;
  readonly points: readonly ChartPoint[];
  /** A value as text, for the pointer. */
  readonly format: (value: number) => string;
  /** In short, for the axis, which is narrow. */
  readonly formatShort: (value: number) => string;
}

export const ChartCanvas = ({ label, points, format, formatShort }: ChartProps) => {
  const frame = useRef<HTMLDivElement>(null);
  const [told, setTold] = useState<number | null>(null);
  const theme = useThemeCount();
  useEffect(() => {
    const host = frame.current;
    if (host === null) return;
    const plot = new uPlot(optionsFor(host, formatShort, setTold), dataOf(points), host);
    const watch = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height: CHART_HEIGHT_PX }));
    watch.observe(host);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [points, formatShort, theme]);
  const point = told === null ? undefined : points[told];
  return (
    <figure className="m-0">
      <div ref={frame} role="img" aria-label={`${label}. ${summaryOf(points, format)}`} className="h-[180px] w-full" />
      <figcaption className="mt-1 min-h-5 text-muted text-sm" aria-hidden="true">
        {point === undefined ? summaryOf(points, format) : `${dayOf(point)}: ${format(point.value)}`}
      </figcaption>
    </figure>
  );
};

const dayOf = ({ date }: ChartPoint): string => utcDayText(Date.parse(date));

const summaryOf = (points: readonly ChartPoint[], format: (value: number) => string): string => {
  const first = points[0];
  const last = points.at(-1);
  if (first === undefined || last === undefined) return 'No data yet';
  const most = points.reduce((top, point) => (point.value > top.value ? point : top), first);
  if (most.value === 0) return 'No data yet';
  return `${dayOf(first)} to ${dayOf(last)}; most on ${dayOf(most)}: ${format(most.value)}`;
};

const dataOf = (points: readonly ChartPoint[]): uPlot.AlignedData => [
  points.map(({ date }) => Date.parse(date) / 1000),
  points.map(({ value }) => value),
];

/** A canvas takes no variables: the colours are asked for at the time of drawing. */
const colour = (host: HTMLElement, name: string): string => {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  host.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
};

/** A bar stands around its day; the first and the last need the room too. */
const HALF_A_DAY_SECS = 43_200;

/** The date of the last day stands around its mark: half of it needs room. */
const LAST_DAY_PX = 22;

/** Steps of the axis: requests and bytes are whole numbers, so that no two lines have the same text. */
const WHOLE_STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

const FONT = '11px ui-sans-serif, system-ui, sans-serif';

const optionsFor = (
  host: HTMLElement,
  formatShort: (value: number) => string,
  onPoint: (index: number | null) => void,
): uPlot.Options => {
  const accent = colour(host, '--color-accent');
  const muted = colour(host, '--color-muted');
  const line = colour(host, '--color-line');
  const bars = uPlot.paths.bars?.({ size: [0.7, 24], radius: 0.15 });
  const axis = { stroke: muted, font: FONT, ticks: { show: false } };
  return {
    width: host.clientWidth,
    height: CHART_HEIGHT_PX,
    padding: [8, LAST_DAY_PX, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (_plot, min, max) => [min - HALF_A_DAY_SECS, max + HALF_A_DAY_SECS] },
      y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        gap: 6,
        grid: { show: false },
        values: (_plot, days) => days.map((day) => utcDayText(day * 1000)),
        space: 60,
      },
      {
        ...axis,
        grid: { stroke: line, width: 1 },
        incrs: WHOLE_STEPS,
        values: (_plot, marks) => marks.map(formatShort),
        size: 60,
        space: 36,
      },
    ],
    series: [{}, { stroke: accent, fill: accent, width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) }],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
};

/** Grows when the theme changes, so that the chart is drawn anew. */
const useThemeCount = (): number => {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const grow = (): void => setCount((value) => value + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', grow);
    const chosen = new MutationObserver(grow);
    chosen.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => {
      system.removeEventListener('change', grow);
      chosen.disconnect();
    };
  }, []);
  return count;
};
