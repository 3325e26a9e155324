// Keeps an error where it happened: a panel that fails says so, and the rest of the page goes on.
import type { UseQueryResult } from '@tanstack/react-query';
import { Component, type ReactNode, useState } from 'react';
import { Problem } from '../ui/problem.tsx';

interface BoundaryProps {
  /** What cannot be shown: "Couldn't load your keys". */
  readonly title?: string;
  readonly children: ReactNode;
}

interface BoundaryState {
  readonly error: unknown;
}

const NO_ERROR: BoundaryState = { error: null };

/** For errors of rendering. */
export class PanelBoundary extends Component<BoundaryProps, BoundaryState> {
  override state = NO_ERROR;

  static getDerivedStateFromError(error: unknown): BoundaryState {
    return { error };
  }

  override render(): ReactNode {
    const { title = "Couldn't load this part of the page", children } = this.props;
    if (this.state.error === null) return children;
    return (
      <div className="p-4">
        <Problem title={title} error={this.state.error} onRetry={() => this.setState(NO_ERROR)} />
      </div>
    );
  }
}

export interface LoadedProps<T> {
  readonly query: UseQueryResult<T>;
  /** What cannot be shown. */
  readonly title?: string;
  /** In the size of what comes. */
  readonly pending: ReactNode;
  /** Of the frame of an error: the room around it that nothing else gives. */
  readonly errorClass?: string;
  readonly children: (data: T) => ReactNode;
}

/** For what is asked of the API. What was there before stays in sight when asking again fails: the banner tells. */
export const Loaded = <T,>({ title = "Couldn't load this right now", ...inside }: LoadedProps<T>) => (
  <PanelBoundary title={title}>
    <LoadedInside title={title} {...inside} />
  </PanelBoundary>
);

const LoadedInside = <T,>({ query, title, pending, errorClass, children }: LoadedProps<T>) => {
  // Asked again, a query that never succeeded is on its way as if for the first time; what went wrong stays in sight.
  const [error, setError] = useState<unknown>(null);
  if (query.isError && query.error !== error) setError(query.error);
  if (query.data !== undefined) return children(query.data);
  if (error === null) return pending;
  return (
    <div className={errorClass}>
      <Problem {...(title === undefined ? {} : { title })} error={error} onRetry={() => void query.refetch()} />
    </div>
  );
};
