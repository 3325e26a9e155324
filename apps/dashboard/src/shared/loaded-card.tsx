// A card that shows the result of a query. Content such as a table reaches the card's border; an error message gets padding.
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Card, type CardProps } from '../ui/card.tsx';
import { Loaded } from './panel-boundary.tsx';

export interface LoadedCardProps<T> extends Omit<CardProps, 'padded' | 'children'> {
  readonly query: UseQueryResult<T>;
  /** Title of the error message, for example "Couldn't load your keys". */
  readonly problem: string;
  /** Placeholder while the query loads, as large as the expected content. */
  readonly pending: ReactNode;
  /** Dialogs opened from within the card. */
  readonly dialogs?: ReactNode;
  readonly children: (data: T) => ReactNode;
}

export const LoadedCard = <T,>({ query, problem, pending, dialogs, children, ...card }: LoadedCardProps<T>) => (
  <Card {...card} padded={false}>
    <Loaded query={query} title={problem} pending={pending} errorClass="px-4 pb-4 sm:px-5 sm:pb-5">
      {children}
    </Loaded>
    {dialogs}
  </Card>
);
