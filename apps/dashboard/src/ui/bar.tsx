// A share of a whole as a bar. Its words stand beside it or in its label.

import type { Tone } from './badge.tsx';
import { classNames } from './class-names.ts';

const FILLS: Record<Tone, string> = {
  neutral: 'bg-edge',
  accent: 'bg-accent',
  good: 'bg-good',
  warn: 'bg-warn',
  bad: 'bg-bad',
};

export interface BarProps {
  /** 0 to 1; more is shown as full. */
  readonly share: number;
  /** For screen readers and as a title: "38 % of connections". */
  readonly label: string;
  readonly tone?: Tone;
  readonly className?: string;
}

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
