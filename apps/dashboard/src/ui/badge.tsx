// States and messages in the tone of what they say. The colour says it a second time, never alone.
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
  /** A point before the words, for what is alive. */
  readonly dot?: boolean;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A state in one or two words. */
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
  /** It appears by itself, and is read out. */
  readonly live?: boolean;
  readonly children: ReactNode;
}

/** A line of text that asks for attention, in the tone of what it says. */
export const Notice = ({ tone = 'neutral', live = false, children }: NoticeProps) => {
  const [look, icon] = LOOKS[tone];
  return (
    <div role={live ? 'status' : undefined} className={classNames('flex gap-3 rounded-md border px-3.5 py-2.5', look)}>
      <Icon name={icon} className="mt-[3px] size-4" />
      <div className="min-w-0 flex-1">{children}</div>
    </div>
  );
};
