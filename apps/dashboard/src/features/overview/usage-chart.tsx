// Requests or bytes per day, as a chart and as a table.
import { useQuery } from '@tanstack/react-query';
import type { UsageChartPoint } from '@tunnel/contract';
import { useMemo, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { BarChart } from '../../ui/bar-chart.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';
import { bytesText, countText, shortCountText, utcDayText } from '../../ui/format.ts';
import { Table } from '../../ui/table.tsx';
import { chartQuery } from './queries.ts';

type Field = 'requests' | 'bytes';

interface Look {
  readonly title: string;
  readonly format: (value: number) => string;
  readonly formatShort: (value: number) => string;
}

const LOOKS: Readonly<Record<Field, Look>> = {
  requests: { title: 'Requests per day', format: countText, formatShort: shortCountText },
  bytes: { title: 'Data per day', format: bytesText, formatShort: bytesText },
};

const FIELDS = [
  { value: 'requests', label: 'Requests' },
  { value: 'bytes', label: 'Data' },
] as const;

export const UsageChart = () => {
  const chart = useQuery(chartQuery(useApi()));
  const [field, setField] = useState<Field>('requests');
  return (
    <Card
      title={LOOKS[field].title}
      description="UTC"
      actions={<Choice label="Show" value={field} options={FIELDS} onChange={setField} />}
    >
      <Loaded query={chart} title="Couldn't load this chart" pending={<Skeleton className="h-[236px] w-full" />}>
        {(days) => <Days days={days} field={field} />}
      </Loaded>
    </Card>
  );
};

const Days = ({ days, field }: { readonly days: readonly UsageChartPoint[]; readonly field: Field }) => {
  const { title, format, formatShort } = LOOKS[field];
  const points = useMemo(() => days.map((day) => ({ date: day.date, value: day[field] })), [days, field]);
  // The placeholder has the height of the chart, so that the page below does not move when data arrives.
  if (points.every(({ value }) => value === 0)) {
    return <p className="grid h-[236px] place-items-center text-muted">No data yet</p>;
  }
  return (
    <>
      <BarChart label={`${title}, the last ${days.length} days`} {...{ points, format, formatShort }} />
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
