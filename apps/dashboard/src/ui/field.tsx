// A labelled place to type or to choose, with its hint and its error as text that screen readers connect with it.
import { type ComponentProps, type ReactNode, useId } from 'react';
import { classNames } from './class-names.ts';

export interface FieldWords {
  readonly label: string;
  readonly hint?: ReactNode;
  /** null: none. */
  readonly error?: string | null;
}

export const inputClass =
  'block h-10 w-full rounded-md border border-edge bg-surface px-3 text-ink placeholder:text-muted hover:border-ink focus-visible:border-accent focus-visible:outline-offset-0 aria-invalid:border-bad disabled:opacity-60 sm:h-9';

interface FieldFrameProps extends FieldWords {
  readonly id: string;
  /** Beside the label. */
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

export const FieldFrame = ({ id, label, hint, error, aside, children }: FieldFrameProps) => (
  <div className="space-y-1.5">
    <div className="flex items-baseline justify-between gap-4">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {aside}
    </div>
    {children}
    {hint !== undefined && (
      <p id={`${id}-hint`} className="text-muted text-sm">
        {hint}
      </p>
    )}
    {error != null && (
      <p id={`${id}-error`} role="alert" className="text-bad text-sm">
        {error}
      </p>
    )}
  </div>
);

/** For the control inside a frame. */
export const describedBy = (id: string, { hint, error }: Pick<FieldWords, 'hint' | 'error'>) => ({
  id,
  'aria-invalid': error == null ? undefined : (true as const),
  'aria-describedby': classNames(hint !== undefined && `${id}-hint`, error != null && `${id}-error`) || undefined,
});

export interface TextFieldProps extends Omit<ComponentProps<'input'>, 'id'>, FieldWords {
  readonly aside?: ReactNode;
}

export const TextField = ({ label, hint, error = null, aside, className, ...input }: TextFieldProps) => {
  const id = useId();
  return (
    <FieldFrame {...{ id, label, hint, error, aside }}>
      <input {...input} {...describedBy(id, { hint, error })} className={classNames(inputClass, className)} />
    </FieldFrame>
  );
};
