// Header of a page: the product's logo, and the page's only h1, which is also the title of the browser tab.
import { type ReactNode, useEffect } from 'react';

export interface PageHeadProps {
  readonly title: string;
  readonly description?: ReactNode;
  readonly actions?: ReactNode;
  /** Link above the heading, back to the parent page. */
  readonly above?: ReactNode;
  /** Line below the heading and the actions, across the full width. */
  readonly below?: ReactNode;
}

export const PageHead = ({ title, description, actions, above, below }: PageHeadProps) => {
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
      {below}
    </div>
  );
};

export const useTitle = (title: string): void => {
  useEffect(() => {
    document.title = `${title} · Hatchway`;
  }, [title]);
};

/** Logo and name of the product. */
export const Brand = () => (
  <span className="inline-flex items-center gap-2 font-semibold text-lg tracking-tight">
    <svg viewBox="0 0 24 24" aria-hidden="true" className="size-6 shrink-0">
      <rect width="24" height="24" rx="6" className="fill-accent" />
      <path
        d="M6 17v-4a6 6 0 0 1 12 0v4M10 17v-4a2 2 0 0 1 4 0v4"
        fill="none"
        strokeWidth="2"
        strokeLinecap="round"
        className="stroke-on-accent"
      />
    </svg>
    Hatchway
  </span>
);
