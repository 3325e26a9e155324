// One number that explains itself: what it counts, over which time, and how much.
import type { ReactNode } from 'react';

export interface StatProps {
  readonly label: string;
  readonly value: ReactNode;
  /** The period, the unit, or what it is a part of. */
  readonly note?: ReactNode;
  readonly children?: ReactNode;
}

export const Stat = ({ label, value, note, children }: StatProps) => (
  <div className="min-w-0 rounded-lg border border-line bg-surface p-4 sm:p-5">
    <dl>
      <dt className="text-muted text-sm">{label}</dt>
      <dd className="mt-1 wrap-anywhere font-semibold text-xl tracking-tight sm:text-2xl">{value}</dd>
      {note !== undefined && <dd className="mt-0.5 text-muted text-sm">{note}</dd>}
    </dl>
    {children}
  </div>
);
