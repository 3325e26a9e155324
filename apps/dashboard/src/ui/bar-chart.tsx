// Bar chart with a bar per day, a few grid lines, and the value of the day under the pointer.
import { useState } from 'react';
import { isWritten, linesOf } from './chart-scale.ts';
import { classNames } from './class-names.ts';
import { utcDayText } from './format.ts';

export interface ChartPoint {
  /** UTC day of the bar, such as "2030-01-31". */
  readonly date: string;
  readonly value: number;
}

export interface BarChartProps {
  /** Name of the chart for screen readers, such as `Requests in the last 30 days`. */
  readonly label: string;
  readonly points: readonly ChartPoint[];
  /** Formats a value for the tooltip under the pointer. */
  readonly format: (value: number) => string;
  /** Formats a value as short text for the axis. */
  readonly formatShort: (value: number) => string;
}

/** Number of days labeled below the chart, limited by the width of a phone. */
const DAY_TEXTS = 4;

export const BarChart = ({ label, points, format, formatShort }: BarChartProps) => {
  const [pointed, setPointed] = useState<number | null>(null);
  const lines = linesOf(Math.max(0, ...points.map(({ value }) => value)));
  const top = lines.at(-1) ?? 1;
  const point = pointed === null ? undefined : points[pointed];
  return (
    <figure className="m-0">
      <div role="img" aria-label={`${label}. ${summaryOf(points, format)}`} className="h-[180px] pt-2 text-muted">
        <div className="flex h-full gap-2 text-[0.6875rem] leading-3">
          <ValueAxis lines={lines} top={top} text={formatShort} />
          <div className="flex min-w-0 flex-1 flex-col">
            <div className="relative flex-1">
              {[0, ...lines].map((line) => (
                <div
                  key={line}
                  className="absolute inset-x-0 border-line border-t"
                  style={{ bottom: `${(line / top) * 100}%` }}
                />
              ))}
              <div className="absolute inset-0 flex" onPointerLeave={() => setPointed(null)}>
                {points.map(({ date, value }, index) => (
                  <div
                    key={date}
                    className="flex min-w-0 flex-1 items-end justify-center"
                    onPointerEnter={() => setPointed(index)}
                  >
                    <div
                      className={classNames(
                        'w-[70%] max-w-6 rounded-t-[3px] bg-accent',
                        pointed !== null && pointed !== index && 'opacity-50',
                      )}
                      style={{ height: `${(value / top) * 100}%` }}
                    />
                  </div>
                ))}
              </div>
            </div>
            <DayAxis points={points} />
          </div>
        </div>
      </div>
      <figcaption className="mt-1 min-h-5 text-muted text-sm" aria-hidden="true">
        {point === undefined ? summaryOf(points, format) : `${dayOf(point)}: ${format(point.value)}`}
      </figcaption>
    </figure>
  );
};

interface ValueAxisProps {
  readonly lines: readonly number[];
  readonly top: number;
  readonly text: (value: number) => string;
}

/** Labels of the value axis. An invisible second copy of the labels gives the axis the width of its longest label. */
const ValueAxis = ({ lines, top, text }: ValueAxisProps) => {
  const texts = [0, ...lines].map((line) => ({ line, text: text(line) }));
  return (
    <div className="relative mb-5 whitespace-nowrap text-right">
      {texts.map((one) => (
        <div key={one.line} className="invisible h-0">
          {one.text}
        </div>
      ))}
      {texts.map((one) => (
        <div
          key={one.line}
          className="absolute right-0 translate-y-1/2"
          style={{ bottom: `${(one.line / top) * 100}%` }}
        >
          {one.text}
        </div>
      ))}
    </div>
  );
};

/**
 * Labels of the day axis. A label is centered below its day and can be wider than the bar. The last label is right-aligned, so that it
 * ends with the chart.
 */
const DayAxis = ({ points }: Pick<BarChartProps, 'points'>) => (
  <div className="flex h-5 items-end">
    {points.map((point, index) => (
      <div
        key={point.date}
        className={classNames(
          'flex min-w-0 flex-1',
          index === points.length - 1 && points.length > 1 ? 'justify-end' : 'justify-center',
        )}
      >
        {isWritten(index, points.length, DAY_TEXTS) && <span className="whitespace-nowrap">{dayOf(point)}</span>}
      </div>
    ))}
  </div>
);

const dayOf = ({ date }: ChartPoint): string => utcDayText(Date.parse(date));

const summaryOf = (points: readonly ChartPoint[], format: (value: number) => string): string => {
  const first = points[0];
  const last = points.at(-1);
  if (first === undefined || last === undefined) return 'No data yet';
  const most = points.reduce((top, point) => (point.value > top.value ? point : top), first);
  if (most.value === 0) return 'No data yet';
  return `${dayOf(first)} to ${dayOf(last)}; most on ${dayOf(most)}: ${format(most.value)}`;
};
