// Values that explain themselves: amounts and times in short with the exact one as the title, a share as a bar, a number as a tile.
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

/** A moment: relative, and exact as its title. `at`: an ISO time of the API. */
export const Time = ({ at }: { readonly at: string }) => {
  const moment = Date.parse(at);
  const text = useNow((now) => agoText(moment, now));
  return (
    <time dateTime={at} title={`${momentText(moment)} here, ${utcMomentText(moment)}`} className="whitespace-nowrap">
      {text}
    </time>
  );
};

/** A moment exactly: by the reader's clock, and in UTC as its title. */
export const Moment = ({ at }: { readonly at: string }) => {
  const moment = Date.parse(at);
  return (
    <time dateTime={at} title={utcMomentText(moment)} className="whitespace-nowrap">
      {momentText(moment)}
    </time>
  );
};

/** The day of a moment to come, and the exact one as its title. */
export const Day = ({ at }: { readonly at: string }) => {
  const moment = Date.parse(at);
  return (
    <time dateTime={at} title={`${momentText(moment)} here, ${utcMomentText(moment)}`} className="whitespace-nowrap">
      {dateText(moment)}
    </time>
  );
};

/** `until` null: it goes on. */
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
  /** 0 to 1; more is shown as full. */
  readonly share: number;
  /** For screen readers and as a title: "38 % of connections". */
  readonly label: string;
  readonly tone?: Tone;
  readonly className?: string;
}

/** A share of a whole as a bar. Its words stand beside it or in its label. */
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
  /** The period, the unit, or what it is a part of. */
  readonly note?: ReactNode;
  readonly children?: ReactNode;
}

/** One number that explains itself: what it counts, over which time, and how much. */
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
