// A command to copy and run.
import { Fragment } from 'react';
import { CopyButton } from './copy-button.tsx';
import { Skeleton } from './skeleton.tsx';

export interface CommandLineProps {
  /** null: what it needs is on its way. */
  readonly command: string | null;
  /** What it does, for the copy button: "Copy the command that …". */
  readonly label?: string;
  readonly onCopied?: () => void;
}

export const CommandLine = ({ command, label = 'Copy the command', onCopied }: CommandLineProps) => (
  <div className="flex min-h-11 min-w-0 items-start gap-2 rounded-md border border-line bg-sunken py-1 pr-1 pl-3">
    <code className="min-w-0 flex-1 break-words py-1.5 font-mono text-sm">
      <span aria-hidden="true" className="select-none text-muted">
        ${' '}
      </span>
      {command === null ? <Skeleton className="inline-block h-4 w-3/4 align-middle" /> : <Words text={command} />}
    </code>
    {command !== null && <CopyButton text={command} label={label} {...(onCopied === undefined ? {} : { onCopied })} />}
  </div>
);

/** A line may end between words, never inside of `--flag`. */
const Words = ({ text }: { readonly text: string }) =>
  text.split(' ').map((word, index) => (
    <Fragment key={index}>
      {index > 0 && ' '}
      <span className="inline-block max-w-full break-words">{word}</span>
    </Fragment>
  ));
