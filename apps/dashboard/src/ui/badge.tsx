// Badges and notices in several tones. The color only repeats the meaning of the text, so that users can read the page without colors.
import type { ReactNode } from 'react';
import { classNames } from './class-names.ts';
import { Icon, type IconName } from './icon.tsx';

export type Tone = 'neutral' | 'accent' | 'good' | 'warn' | 'bad';

const TONES: Record<Tone, string> = {
  neutral: 'bg-sunken text-muted',
  accent: 'bg-accent-soft text-accent',
  good: 'bg-good-soft text-good',
  warn: 'bg-warn-soft text-warn',
  bad: 'bg-bad-soft text-bad',
};

export interface BadgeProps {
  readonly tone?: Tone;
  /** Shows a dot before the text, for live items. */
  readonly dot?: boolean;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A label that shows a state in one or two words. */
export const Badge = ({ tone = 'neutral', dot = false, title, children }: BadgeProps) => (
  <span
    title={title}
    className={classNames(
      'inline-flex items-center gap-1.5 whitespace-nowrap rounded-full px-2 py-0.5 font-medium text-xs',
      TONES[tone],
    )}
  >
    {dot && <span aria-hidden="true" className="size-1.5 rounded-full bg-current" />}
    {children}
  </span>
);

const LOOKS: Record<Tone, readonly [string, IconName]> = {
  neutral: ['border-line bg-sunken [&>svg]:text-muted', 'info'],
  accent: ['border-accent/30 bg-accent-soft [&>svg]:text-accent', 'info'],
  good: ['border-good/30 bg-good-soft [&>svg]:text-good', 'check'],
  warn: ['border-warn/30 bg-warn-soft [&>svg]:text-warn', 'warning'],
  bad: ['border-bad/30 bg-bad-soft [&>svg]:text-bad', 'warning'],
};

interface NoticeProps {
  readonly tone?: Tone;
  /** True for a notice that appears without user action, so that screen readers announce the notice. */
  readonly live?: boolean;
  readonly children: ReactNode;
}

/** A short message with an icon, in the tone of its content. */
export const Notice = ({ tone = 'neutral', live = false, children }: NoticeProps) => {
  const [look, icon] = LOOKS[tone];
  return (
    <div role={live ? 'status' : undefined} className={classNames('flex gap-3 rounded-md border px-3.5 py-2.5', look)}>
      <Icon name={icon} className="mt-[3px] size-4" />
      <div className="min-w-0 flex-1">{children}</div>
    </div>
  );
};
