// A button. While its work is under way it says so, keeps its width and its focus, and takes no second press.
import type { ComponentProps, MouseEvent, ReactNode } from 'react';
import { type ButtonKind, type ButtonSize, buttonClass } from './button-class.ts';
import { classNames } from './class-names.ts';
import { Spinner } from './spinner.tsx';

export interface ButtonProps extends ComponentProps<'button'> {
  readonly kind?: ButtonKind;
  readonly size?: ButtonSize;
  readonly pending?: boolean;
  readonly children: ReactNode;
}

export const Button = ({
  kind = 'secondary',
  size = 'medium',
  pending = false,
  type = 'button',
  className,
  onClick,
  children,
  ...rest
}: ButtonProps) => {
  const press = (event: MouseEvent<HTMLButtonElement>): void => {
    if (pending) event.preventDefault();
    else onClick?.(event);
  };
  return (
    <button
      {...rest}
      // oxlint-disable-next-line react/button-has-type -- its own default is above
      type={type}
      aria-disabled={pending || undefined}
      aria-busy={pending || undefined}
      className={buttonClass(kind, size, classNames('relative', className))}
      onClick={press}
    >
      <span className={classNames('inline-flex items-center gap-[inherit]', pending && 'opacity-0')}>{children}</span>
      {pending && (
        <span className="absolute inset-0 grid place-items-center">
          <Spinner />
        </span>
      )}
    </button>
  );
};
