// Error message for users: the API's message, and the request ID if the platform's operator has to look up the cause.
import { Fault } from '@tunnel/errors';
import type { ReactNode } from 'react';
import { Button, CopyButton } from './button.tsx';
import { Icon } from './icon.tsx';
import { problemText, requestIdOf } from './problem-text.ts';

export interface ProblemProps {
  readonly error: unknown;
  /** Title that names the failed action, such as "Couldn't load your keys". Shown before the reason. */
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

/** Request ID in small print, to quote in a support request. */
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

/** Shows an error message, or nothing if there is no error. */
export const MaybeProblem = ({ error }: { readonly error: unknown }) =>
  error == null ? null : <Problem error={error} />;

export const isFault = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Fault && codes.includes(error.code);
