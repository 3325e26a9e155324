// A line of text that asks for attention, in the tone of what it says.
import type { ReactNode } from 'react';
import type { Tone } from './badge.tsx';
import { classNames } from './class-names.ts';
import { Icon, type IconName } from './icon.tsx';

const LOOKS: Record<Tone, readonly [string, IconName]> = {
  neutral: ['border-line bg-sunken [&>svg]:text-muted', 'info'],
  accent: ['border-accent/30 bg-accent-soft [&>svg]:text-accent', 'info'],
  good: ['border-good/30 bg-good-soft [&>svg]:text-good', 'check'],
  warn: ['border-warn/30 bg-warn-soft [&>svg]:text-warn', 'warning'],
  bad: ['border-bad/30 bg-bad-soft [&>svg]:text-bad', 'warning'],
};

export interface NoticeProps {
  readonly tone?: Tone;
  /** It appears by itself, and is read out. */
  readonly live?: boolean;
  readonly children: ReactNode;
}

export const Notice = ({ tone = 'neutral', live = false, children }: NoticeProps) => {
  const [look, icon] = LOOKS[tone];
  return (
    <div role={live ? 'status' : undefined} className={classNames('flex gap-3 rounded-md border px-3.5 py-2.5', look)}>
      <Icon name={icon} className="mt-[3px] size-4" />
      <div className="min-w-0 flex-1">{children}</div>
    </div>
  );
};
