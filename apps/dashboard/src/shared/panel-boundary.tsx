// Error boundaries for panels: a panel that fails shows an error message, and the rest of the page keeps working.
import type { UseQueryResult } from '@tanstack/react-query';
import { Component, type ReactNode, useState } from 'react';
import { Problem } from '../ui/problem.tsx';

interface BoundaryProps {
  /** Title of the error message, for example "Couldn't load your keys". */
  readonly title?: string;
  readonly children: ReactNode;
}

interface BoundaryState {
  readonly error: unknown;
}

const NO_ERROR: BoundaryState = { error: null };

/** Error boundary for exceptions thrown while a panel renders. */
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
  /** Title of the error message if the query fails. */
  readonly title?: string;
  /** Placeholder while the query loads, as large as the expected content. */
  readonly pending: ReactNode;
  /** Classes of the element around the error message, for padding if the parent has none. */
  readonly errorClass?: string;
  readonly children: (data: T) => ReactNode;
}

/**
 * Shows the result of a query, a placeholder, or an error. If a later refetch fails, the previous data stays visible, and a banner at the
 * top reports an unreachable platform.
 */
export const Loaded = <T,>({ title = "Couldn't load this right now", ...inside }: LoadedProps<T>) => (
  <PanelBoundary title={title}>
    <LoadedInside title={title} {...inside} />
  </PanelBoundary>
);

const LoadedInside = <T,>({ query, title, pending, errorClass, children }: LoadedProps<T>) => {
  // During the refetch of a query that never succeeded, TanStack Query resets the error. The last error stays visible until the refetch
  // ends.
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
