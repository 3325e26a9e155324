// An empty list says what to do next.
import type { ReactNode } from 'react';
import { CommandLine } from './command-line.tsx';
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
