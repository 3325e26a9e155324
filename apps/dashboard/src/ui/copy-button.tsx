// Copies a text, and says for a moment that it did.
import { useEffect, useState } from 'react';
import { buttonClass } from './button-class.ts';
import { Icon } from './icon.tsx';

const SHOWN_MS = 2000;

export interface CopyButtonProps {
  readonly text: string;
  /** What is copied: "Copy the key". */
  readonly label: string;
  /** The words are in sight, not for screen readers alone. */
  readonly showLabel?: boolean;
  readonly onCopied?: () => void;
}

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
  const words = { idle: label, copied: 'Copied', failed: 'Not copied: select it by hand' }[state];
  return (
    <button
      type="button"
      title={words}
      aria-label={showLabel ? undefined : label}
      onClick={() => void copy()}
      className={buttonClass(showLabel ? 'secondary' : 'quiet', 'small', showLabel ? '' : 'w-8 px-0!')}
    >
      <Icon
        name={state === 'copied' ? 'check' : 'copy'}
        className={state === 'copied' ? 'size-4 text-good' : 'size-4'}
      />
      {showLabel && words}
      <span role="status" className="sr-only">
        {state === 'idle' ? '' : words}
      </span>
    </button>
  );
};

/** Pages over plain http have no clipboard; an old way is left for them. */
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
  // Inside an open dialog only what is inside it can be selected.
  const host = document.querySelector('dialog[open]') ?? document.body;
  host.append(area);
  area.select();
  // oxlint-disable-next-line typescript/no-deprecated -- there is no other way without a secure context
  const done = document.execCommand('copy');
  area.remove();
  return done;
};
