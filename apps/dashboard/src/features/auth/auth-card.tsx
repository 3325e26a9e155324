// One step of getting in: a heading, mostly a form, and the other ways below it.
import { type ReactNode, useEffect, useRef } from 'react';
import { useTitle } from '../../ui/page-head.tsx';

export interface AuthCardProps {
  readonly title: string;
  readonly description?: ReactNode;
  readonly below?: ReactNode;
  readonly children: ReactNode;
}

export const AuthCard = ({ title, description, below, children }: AuthCardProps) => {
  useTitle(title);
  const card = useFirstFocus();
  return (
    <>
      <div ref={card} className="rounded-xl border border-line bg-surface p-6 sm:p-8">
        <h1 tabIndex={-1} className="font-semibold text-xl tracking-tight outline-none">
          {title}
        </h1>
        {description !== undefined && <p className="mt-1.5 text-muted">{description}</p>}
        <div className="mt-6 space-y-5">{children}</div>
      </div>
      {below !== undefined && <p className="mt-6 text-center text-muted">{below}</p>}
    </>
  );
};

/** Where there is a keyboard one can type at once; elsewhere no keyboard jumps up, and the heading is read. */
const useFirstFocus = () => {
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const hasKeyboard = matchMedia('(hover: hover)').matches;
    const field = hasKeyboard ? card.current?.querySelector<HTMLElement>('input:not([value]), input[value=""]') : null;
    (field ?? card.current?.querySelector<HTMLElement>('h1'))?.focus({ preventScroll: true });
  }, []);
  return card;
};
