// A chart of days. The drawing comes with the pages that have one; its place is kept until then.
import { lazy, Suspense } from 'react';
import type { ChartProps } from './chart-canvas.tsx';
import { Skeleton } from './skeleton.tsx';

const ChartCanvas = lazy(() => import('./chart-canvas.tsx').then((module) => ({ default: module.ChartCanvas })));

export const Chart = (props: ChartProps) => (
  <Suspense fallback={<ChartSkeleton />}>
    <ChartCanvas {...props} />
  </Suspense>
);

/** With the line below the drawing. */
export const ChartSkeleton = () => (
  <div className="pb-6">
    <Skeleton className="h-[180px] w-full" />
  </div>
);
