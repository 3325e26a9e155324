// An error as a person needs it: the API's own words, and the id of the request where somebody has to look it up.
import { Fault } from '@tunnel/errors';
import type { ReactNode } from 'react';
import { Button, CopyButton } from './button.tsx';
import { Icon } from './icon.tsx';
import { problemText, requestIdOf } from './problem-text.ts';

export interface ProblemProps {
  readonly error: unknown;
  /** What did not work, before the reason: "Couldn't load your keys". */
  readonly title?: string;
  readonly onRetry?: () => void;
  readonly children?: ReactNode;
}

export const Problem = ({ error, title, onRetry, children }: ProblemProps) => (
  <div role="alert" className="flex gap-3 rounded-md border border-bad/30 bg-bad-soft px-3.5 py-3">
    <Icon name="warning" className="mt-[3px] size-4 text-bad" />
    <div className="min-w-0 flex-1">
      {title !== undefined && <p className="font-medium">{title}</p>}
      <p className={title === undefined ? '' : 'text-muted'}>{problemText(error)}</p>
      {children}
      <RequestLine error={error} />
      {onRetry !== undefined && (
        <div className="mt-2">
          <Button size="small" onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </div>
  </div>
);

/** Small, to be quoted when somebody asks for help. */
const RequestLine = ({ error }: { readonly error: unknown }) => {
  const requestId = requestIdOf(error);
  if (requestId === null) return null;
  return (
    <p className="mt-1 flex items-center gap-x-1 text-muted text-xs">
      Request <code className="min-w-0 break-all font-mono">{requestId}</code>
      <CopyButton text={requestId} label="Copy the request id" />
    </p>
  );
};

/** Nothing while there is no error. */
export const MaybeProblem = ({ error }: { readonly error: unknown }) =>
  error == null ? null : <Problem error={error} />;

export const isFault = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Fault && codes.includes(error.code);
