// Card: a bordered section of a page, usually with a heading. Also contains skeletons, the placeholders for loading content.
import { type ReactNode, useId } from 'react';
import { classNames } from './class-names.ts';

export interface CardProps {
  readonly title?: ReactNode;
  readonly description?: ReactNode;
  /** Buttons to the right of the heading. */
  readonly actions?: ReactNode;
  /** Text below a separator line at the bottom of the card. */
  readonly footer?: ReactNode;
  /** False if the content reaches the card's border, like a table. */
  readonly padded?: boolean;
  readonly className?: string;
  readonly children?: ReactNode;
}

export const Card = ({ title, description, actions, footer, padded = true, className, children }: CardProps) => {
  const id = useId();
  return (
    <section
      aria-labelledby={title === undefined ? undefined : id}
      className={classNames(
        'flex min-w-0 flex-col overflow-hidden rounded-lg border border-line bg-surface',
        className,
      )}
    >
      {title !== undefined && (
        <div
          className={classNames(
            'flex flex-wrap items-start justify-between gap-x-4 gap-y-2 px-4 pt-4 sm:px-5',
            !padded && 'pb-4',
          )}
        >
          <div className="min-w-0">
            <h2 id={id} className="font-semibold">
              {title}
            </h2>
            {description !== undefined && <p className="mt-0.5 text-muted text-sm">{description}</p>}
          </div>
          {actions}
        </div>
      )}
      {children !== undefined && <div className={classNames('min-w-0 flex-1', padded && 'p-4 sm:p-5')}>{children}</div>}
      {footer !== undefined && (
        <div className="border-line border-t bg-page px-4 py-3 text-muted text-sm sm:px-5">{footer}</div>
      )}
    </section>
  );
};

/** Placeholder for loading content, in the size of that content. `className` sets the size, as in "h-5 w-32". */
export const Skeleton = ({ className }: { readonly className: string }) => (
  <span aria-hidden="true" className={classNames('skeleton block max-w-full rounded-md', className)} />
);

export const SkeletonLines = ({ count = 3 }: { readonly count?: number }) => (
  <div className="space-y-3">
    {Array.from({ length: count }, (_, index) => (
      <Skeleton key={index} className={index % 3 === 2 ? 'h-5 w-1/2' : 'h-5 w-full'} />
    ))}
  </div>
);
