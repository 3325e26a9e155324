// Names and their values, side by side where there is room.
import type { ReactNode } from 'react';

export interface Fact {
  readonly name: string;
  readonly value: ReactNode;
}

export const Facts = ({ facts }: { readonly facts: readonly Fact[] }) => (
  <dl className="grid grid-cols-2 gap-x-8 gap-y-3 lg:grid-cols-4">
    {facts.map(({ name, value }) => (
      <div key={name}>
        <dt className="text-muted text-sm">{name}</dt>
        <dd className="mt-0.5 font-medium">{value}</dd>
      </div>
    ))}
  </dl>
);
