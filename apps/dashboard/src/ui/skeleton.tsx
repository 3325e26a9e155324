// What stands in for content that is on its way, in the size that it will have.
import { classNames } from './class-names.ts';

/** `className` gives it its size: "h-5 w-32". */
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
