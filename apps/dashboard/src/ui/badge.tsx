// A state in one or two words. The colour says it a second time, never alone.
import type { ReactNode } from 'react';
import { classNames } from './class-names.ts';

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
