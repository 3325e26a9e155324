// The look of buttons, also for links that look like one.
import { classNames } from './class-names.ts';

export type ButtonKind = 'primary' | 'secondary' | 'quiet' | 'danger';
export type ButtonSize = 'small' | 'medium';

const KINDS: Record<ButtonKind, string> = {
  primary: 'border-transparent bg-accent text-on-accent hover:bg-accent-strong',
  secondary: 'border-line bg-surface text-ink hover:border-edge hover:bg-sunken',
  quiet: 'border-transparent bg-transparent text-muted hover:bg-sunken hover:text-ink',
  danger: 'border-transparent bg-bad text-on-bad hover:opacity-90',
};

const SIZES: Record<ButtonSize, string> = {
  small: 'h-8 gap-1.5 px-2.5 text-sm',
  medium: 'h-9 gap-2 px-3.5',
};

export const buttonClass = (kind: ButtonKind = 'secondary', size: ButtonSize = 'medium', more?: string): string =>
  classNames(
    'inline-flex shrink-0 select-none items-center justify-center whitespace-nowrap rounded-md border font-medium',
    'transition-colors duration-100 disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55',
    KINDS[kind],
    SIZES[size],
    more,
  );
