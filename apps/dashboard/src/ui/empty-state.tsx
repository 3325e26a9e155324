// An empty list says what to do next: mostly a command to copy and run, which other pages show without it; and lines to copy into a file.
import { Fragment, type ReactNode } from 'react';
import { CopyButton } from './button.tsx';
import { Skeleton } from './card.tsx';
import { Icon, type IconName } from './icon.tsx';

export interface EmptyProps {
  readonly icon?: IconName;
  readonly title: string;
  readonly children?: ReactNode;
  /** To copy; null: what it needs is on its way. */
  readonly command?: string | null;
  readonly action?: ReactNode;
}

export const Empty = ({ icon, title, children, command, action }: EmptyProps) => (
  <div className="mx-auto flex max-w-lg flex-col items-center px-4 py-12 text-center">
    {icon !== undefined && (
      <span className="mb-4 grid size-10 place-items-center rounded-lg border border-line bg-page text-muted">
        <Icon name={icon} />
      </span>
    )}
    <p className="font-semibold">{title}</p>
    {children !== undefined && <div className="mt-1 text-muted">{children}</div>}
    {command !== undefined && (
      <div className="mt-4 w-full text-left">
        <CommandLine command={command} />
      </div>
    )}
    {action !== undefined && <div className="mt-4">{action}</div>}
  </div>
);

interface CommandLineProps {
  /** null: what it needs is on its way. */
  readonly command: string | null;
  /** What it does, for the copy button: "Copy the command that …". */
  readonly label?: string;
  readonly onCopied?: () => void;
}

/** A command to copy and run. */
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

interface CodeBlockProps {
  /** null: what it needs is on its way. */
  readonly text: string | null;
  /** For the copy button. */
  readonly label: string;
}

/** Lines to copy into a file, with their indents; long ones are broken, so that nothing has to be scrolled. */
export const CodeBlock = ({ text, label }: CodeBlockProps) => (
  <div className="flex min-w-0 items-start gap-2 rounded-md border border-line bg-sunken py-1 pr-1 pl-3">
    <pre className="wrap-anywhere min-w-0 flex-1 whitespace-pre-wrap py-1.5 font-mono text-sm">
      {text === null ? <Skeleton className="h-40 w-3/4" /> : <code>{text}</code>}
    </pre>
    {text !== null && <CopyButton text={text} label={label} />}
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
