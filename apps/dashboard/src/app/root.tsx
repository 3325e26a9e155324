// What is around every page, signed in or not; and what is shown while a page is on its way, or cannot be shown.
import { type ErrorComponentProps, Outlet } from '@tanstack/react-router';
import { useEffect } from 'react';
import { Problem } from '../ui/problem.tsx';
import { Spinner } from '../ui/spinner.tsx';
import { useApp } from './app-context.tsx';
import { AwayBanner } from './away-banner.tsx';

export const Root = () => (
  <>
    <AwayBanner />
    <Outlet />
  </>
);

export const PagePending = () => (
  <div role="status" className="grid min-h-[50vh] place-items-center text-muted">
    <Spinner />
    <span className="sr-only">Loading</span>
  </div>
);

/** When the platform is back, all that failed is tried again. */
export const PageProblem = ({ error, reset }: ErrorComponentProps) => {
  const { reach } = useApp();
  useEffect(() => reach.noteError(error), [reach, error]);
  return (
    <div className="mx-auto max-w-xl p-6">
      <Problem title="This page cannot be shown" error={error} onRetry={reset} />
    </div>
  );
};
