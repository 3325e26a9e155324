// Buttons: a button with a pending state, a button that copies text, and classes for links that look like buttons.
import { type ComponentProps, type MouseEvent, type ReactNode, useEffect, useState } from 'react';
import { classNames } from './class-names.ts';
import { Icon, Spinner } from './icon.tsx';

export interface ButtonProps extends ComponentProps<'button'> {
  readonly kind?: ButtonKind;
  readonly size?: ButtonSize;
  readonly pending?: boolean;
  readonly children: ReactNode;
}

/** Button with a pending state. A pending button shows a spinner, keeps its width and focus, and ignores clicks. */
export const Button = ({
  kind = 'secondary',
  size = 'medium',
  pending = false,
  type = 'button',
  className,
  onClick,
  children,
  ...rest
}: ButtonProps) => {
  const press = (event: MouseEvent<HTMLButtonElement>): void => {
    if (pending) event.preventDefault();
    else onClick?.(event);
  };
  return (
    <button
      {...rest}
      // oxlint-disable-next-line react/button-has-type -- its own default is above
      type={type}
      aria-disabled={pending || undefined}
      aria-busy={pending || undefined}
      className={buttonClass(kind, size, classNames('relative', className))}
      onClick={press}
    >
      <span className={classNames('inline-flex items-center gap-[inherit]', pending && 'opacity-0')}>{children}</span>
      {pending && (
        <span className="absolute inset-0 grid place-items-center">
          <Spinner />
        </span>
      )}
    </button>
  );
};

export type ButtonKind = 'primary' | 'secondary' | 'quiet' | 'danger';
type ButtonSize = 'small' | 'medium';

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

/** Returns the classes of a button, also for links that look like buttons. */
export const buttonClass = (kind: ButtonKind = 'secondary', size: ButtonSize = 'medium', more?: string): string =>
  classNames(
    'inline-flex shrink-0 select-none items-center justify-center whitespace-nowrap rounded-md border font-medium',
    'transition-colors duration-100 disabled:cursor-not-allowed disabled:opacity-55 aria-disabled:cursor-not-allowed aria-disabled:opacity-55',
    KINDS[kind],
    SIZES[size],
    more,
  );

const SHOWN_MS = 2000;

interface CopyButtonProps {
  readonly text: string;
  /** Label that names the copied content, such as "Copy the key". */
  readonly label: string;
  /** Shows the label. By default, only screen readers read the label. */
  readonly showLabel?: boolean;
  readonly onCopied?: () => void;
}

/** Button that copies text to the clipboard, and confirms the copy for 2 s. */
export const CopyButton = ({ text, label, showLabel = false, onCopied }: CopyButtonProps) => {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return;
    const timer = setTimeout(() => setState('idle'), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async (): Promise<void> => {
    const done = await copyText(text);
    setState(done ? 'copied' : 'failed');
    if (done) onCopied?.();
  };
  const shown = { idle: label, copied: 'Copied', failed: "Couldn't copy. Select the text instead." }[state];
  return (
    <button
      type="button"
      title={shown}
      aria-label={showLabel ? undefined : label}
      onClick={() => void copy()}
      className={buttonClass(showLabel ? 'secondary' : 'quiet', 'small', showLabel ? '' : 'w-8 px-0!')}
    >
      <Icon
        name={state === 'copied' ? 'check' : 'copy'}
        className={state === 'copied' ? 'size-4 text-good' : 'size-4'}
      />
      {showLabel && shown}
      <span role="status" className="sr-only">
        {state === 'idle' ? '' : shown}
      </span>
    </button>
  );
};

/** Copies text to the clipboard. Pages over plain http have no clipboard API, so the function falls back to copying a selection. */
const copyText = async (text: string): Promise<boolean> => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
};

const copyBySelection = (text: string): boolean => {
  const area = document.createElement('textarea');
  area.value = text;
  area.setAttribute('readonly', '');
  area.className = 'fixed top-0 opacity-0';
  // While a modal dialog is open, only elements inside the dialog can be selected.
  const host = document.querySelector('dialog[open]') ?? document.body;
  host.append(area);
  area.select();
  // oxlint-disable-next-line typescript/no-deprecated -- there is no other way without a secure context
  const done = document.execCommand('copy');
  area.remove();
  return done;
};
