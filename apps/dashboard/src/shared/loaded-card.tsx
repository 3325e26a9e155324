// A card around the answer to a query. The content reaches the border, as a table does; an error has room around.
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Card, type CardProps } from '../ui/card.tsx';
import { Loaded } from './panel-boundary.tsx';

export interface LoadedCardProps<T> extends Omit<CardProps, 'padded' | 'children'> {
  readonly query: UseQueryResult<T>;
  /** What cannot be shown: "Couldn't load your keys". */
  readonly problem: string;
  /** In the size of the content. */
  readonly pending: ReactNode;
  /** Dialogs that a click in the card opens. */
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
