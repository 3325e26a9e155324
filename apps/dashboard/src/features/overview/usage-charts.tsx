// Requests and bytes by day, drawn, and as a table for those who would rather read it.
import { useQuery } from '@tanstack/react-query';
import type { UsageChartPoint } from '@tunnel/contract';
import { lazy, Suspense, useMemo } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { Loaded } from '../../app/panel-boundary.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import type { ChartProps } from '../../ui/chart-canvas.tsx';
import { bytesText, countText, shortCountText, utcDayText } from '../../ui/format.ts';
import { Table } from '../../ui/table.tsx';
import { chartQuery } from './queries.ts';

export const UsageCharts = () => (
  <div className="grid gap-4 lg:grid-cols-2">
    <UsageChart field="requests" title="Requests per day" format={countText} formatShort={shortCountText} />
    <UsageChart field="bytes" title="Data per day" format={bytesText} formatShort={bytesText} />
  </div>
);

interface UsageChartProps {
  readonly field: 'requests' | 'bytes';
  readonly title: string;
  readonly format: (value: number) => string;
  readonly formatShort: (value: number) => string;
}

const UsageChart = ({ field, title, format, formatShort }: UsageChartProps) => {
  const chart = useQuery(chartQuery(useApi()));
  return (
    <Card title={title} description="UTC">
      <Loaded
        query={chart}
        title="Couldn't load this chart"
        pending={
          <div className="pb-8">
            <ChartSkeleton />
          </div>
        }
      >
        {(days) => <Days {...{ days, field, title, format, formatShort }} />}
      </Loaded>
    </Card>
  );
};

interface DaysProps extends UsageChartProps {
  readonly days: readonly UsageChartPoint[];
}

const Days = ({ days, field, title, format, formatShort }: DaysProps) => {
  const points = useMemo(() => days.map((day) => ({ date: day.date, value: day[field] })), [days, field]);
  // Axes without a bar say less than a word. As high as the chart with its lines, so that nothing moves.
  if (points.every(({ value }) => value === 0)) {
    return <p className="grid h-[236px] place-items-center text-muted">No data yet</p>;
  }
  return (
    <>
      <Chart label={`${title}, the last ${days.length} days`} {...{ points, format, formatShort }} />
      <details className="mt-3">
        <summary className="w-max rounded-sm text-muted text-sm hover:text-ink">Show table</summary>
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a place that scrolls */}
        <div role="region" aria-label={`${title} as a table`} tabIndex={0} className="mt-2 max-h-64 overflow-y-auto">
          <Table
            caption={`${title}, newest first`}
            columns={[
              { key: 'day', header: 'Day', isHead: true, cell: ({ date }) => utcDayText(Date.parse(date)) },
              { key: 'value', header: title, align: 'end', cell: ({ value }) => format(value) },
            ]}
            rows={points.toReversed()}
            rowKey={({ date }) => date}
          />
        </div>
      </details>
    </>
  );
};

const ChartCanvas = lazy(() => import('../../ui/chart-canvas.tsx').then((module) => ({ default: module.ChartCanvas })));

/** The drawing comes when there is something to draw; its place is kept until then. */
const Chart = (props: ChartProps) => (
  <Suspense fallback={<ChartSkeleton />}>
    <ChartCanvas {...props} />
  </Suspense>
);

/** With the line below the drawing. */
const ChartSkeleton = () => (
  <div className="pb-6">
    <Skeleton className="h-[180px] w-full" />
  </div>
);
