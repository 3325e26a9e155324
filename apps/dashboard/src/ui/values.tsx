// Formatted values: short amounts and times with the exact value as the tooltip, a share as a bar, and a figure as a tile.
import type { ReactNode } from 'react';
import type { Tone } from './badge.tsx';
import { classNames } from './class-names.ts';
import {
  agoText,
  bytesText,
  countText,
  dateText,
  durationText,
  momentText,
  moneyText,
  shortCountText,
  utcMomentText,
} from './format.ts';
import { useNow } from './hooks.ts';

export const Bytes = ({ value }: { readonly value: number }) => (
  <span title={`${countText(value)} bytes`} className="whitespace-nowrap">
    {bytesText(value)}
  </span>
);

export const Count = ({ value }: { readonly value: number }) => (
  <span title={countText(value)}>{shortCountText(value)}</span>
);

export const Money = ({ cents }: { readonly cents: number }) => <span>{moneyText(cents)}</span>;

/** A time relative to now, with the exact time as the tooltip. `at` is an ISO time from the API. */
export const Time = ({ at }: { readonly at: string }) => {
  const moment = Date.parse(at);
  const text = useNow((now) => agoText(moment, now));
  return (
    <time dateTime={at} title={`${momentText(moment)} here, ${utcMomentText(moment)}`} className="whitespace-nowrap">
      {text}
    </time>
  );
};

/** An exact time in the browser's time zone, with the UTC time as the tooltip. */
export const Moment = ({ at }: { readonly at: string }) => {
  const moment = Date.parse(at);
  return (
    <time dateTime={at} title={utcMomentText(moment)} className="whitespace-nowrap">
      {momentText(moment)}
    </time>
  );
};

/** The date of a future time, with the exact time as the tooltip. */
export const Day = ({ at }: { readonly at: string }) => {
  const moment = Date.parse(at);
  return (
    <time dateTime={at} title={`${momentText(moment)} here, ${utcMomentText(moment)}`} className="whitespace-nowrap">
      {dateText(moment)}
    </time>
  );
};

/** Duration between two times. If `until` is null, the duration is still growing and updates every second. */
export const Duration = ({ from, until }: { readonly from: string; readonly until: string | null }) => {
  const text = useNow((now) => durationText((until === null ? now : Date.parse(until)) - Date.parse(from)));
  return <span className="whitespace-nowrap">{text}</span>;
};

const FILLS: Record<Tone, string> = {
  neutral: 'bg-edge',
  accent: 'bg-accent',
  good: 'bg-good',
  warn: 'bg-warn',
  bad: 'bg-bad',
};

interface BarProps {
  /** Share from 0 to 1. Larger values fill the whole bar. */
  readonly share: number;
  /** Label for screen readers and the tooltip, such as "38 % of connections". */
  readonly label: string;
  readonly tone?: Tone;
  readonly className?: string;
}

/** Bar that shows a share of a whole. The share must also appear as text, next to the bar or in its label. */
export const Bar = ({ share, label, tone = 'accent', className }: BarProps) => {
  const percent = Math.min(100, Math.max(0, Number.isFinite(share) ? share * 100 : 0));
  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(percent)}
      title={label}
      className={classNames('h-1.5 min-w-16 overflow-hidden rounded-full bg-sunken', className)}
    >
      <div
        className={classNames('h-full rounded-full transition-[width] duration-300', FILLS[tone])}
        style={{ width: `${percent}%` }}
      />
    </div>
  );
};

interface StatProps {
  readonly label: string;
  readonly value: ReactNode;
  /** Text below the figure: the period, the unit, or the total. */
  readonly note?: ReactNode;
  readonly children?: ReactNode;
}

/** Tile with a figure, its label and a note. */
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
