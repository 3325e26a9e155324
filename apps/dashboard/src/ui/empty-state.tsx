// Empty states of lists, which suggest the next step, usually with a command to copy. Also contains the command line and the code block
// for other pages.
import { Fragment, type ReactNode } from 'react';
import { CopyButton } from './button.tsx';
import { Skeleton } from './card.tsx';
import { Icon, type IconName } from './icon.tsx';

export interface EmptyProps {
  readonly icon?: IconName;
  readonly title: string;
  readonly children?: ReactNode;
  /** Command to copy. Null while data for the command is loading. */
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
  /** Command to copy. Null while data for the command is loading. */
  readonly command: string | null;
  /** Label of the copy button that tells the effect of the command, such as "Copy the command that …". */
  readonly label?: string;
  readonly onCopied?: () => void;
}

/** A shell command with a copy button. */
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
  /** Text to copy. Null while data for the text is loading. */
  readonly text: string | null;
  /** Label of the code block's copy button. */
  readonly label: string;
}

/** Text to copy into a file, with its indentation. Long lines wrap, so that the block does not scroll horizontally. */
export const CodeBlock = ({ text, label }: CodeBlockProps) => (
  <div className="flex min-w-0 items-start gap-2 rounded-md border border-line bg-sunken py-1 pr-1 pl-3">
    <pre className="wrap-anywhere min-w-0 flex-1 whitespace-pre-wrap py-1.5 font-mono text-sm">
      {text === null ? <Skeleton className="h-40 w-3/4" /> : <code>{text}</code>}
    </pre>
    {text !== null && <CopyButton text={text} label={label} />}
  </div>
);

/** Words of a command. Lines break only between words, never inside a flag such as `--flag`. */
const Words = ({ text }: { readonly text: string }) =>
  text.split(' ').map((word, index) => (
    <Fragment key={index}>
      {index > 0 && ' '}
      <span className="inline-block max-w-full break-words">{word}</span>
    </Fragment>
  ));
