// The head of a page: its one h1, which is also the title of the browser's tab.
import { type ReactNode, useEffect } from 'react';

export interface PageHeadProps {
  readonly title: string;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  /** Above the heading: the way back. */
  readonly above?: ReactNode;
}

export const PageHead = ({ title, description, actions, above }: PageHeadProps) => {
  useTitle(title);
  return (
    <div className="mb-6">
      {above}
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <h1 className="break-words font-semibold text-xl tracking-tight sm:text-2xl">{title}</h1>
          {description !== undefined && <p className="mt-1 max-w-prose text-muted">{description}</p>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap gap-2">{actions}</div>}
      </div>
    </div>
  );
};

export const useTitle = (title: string): void => {
  useEffect(() => {
    document.title = `${title} · Tunnel`;
  }, [title]);
};
