// Labeled inputs for text, passwords and checkboxes. Hints and error messages are linked to the input for screen readers.
import { type ComponentProps, type ReactNode, useId, useState } from 'react';
import { classNames } from './class-names.ts';
import { Icon } from './icon.tsx';

export interface FieldText {
  readonly label: string;
  readonly hint?: ReactNode;
  /** Error message of the field. Null without an error. */
  readonly error?: string | null;
}

export const inputClass =
  'block h-10 w-full rounded-md border border-edge bg-surface px-3 text-ink placeholder:text-muted hover:border-ink focus-visible:border-accent focus-visible:outline-offset-0 aria-invalid:border-bad disabled:opacity-60 sm:h-9';

interface FieldFrameProps extends FieldText {
  readonly id: string;
  /** Content to the right of the label, such as a link. */
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

export const FieldFrame = ({ id, label, hint, error, aside, children }: FieldFrameProps) => (
  <div className="space-y-1.5">
    <div className="flex items-baseline justify-between gap-4">
      <label htmlFor={id} className="min-w-0 font-medium">
        {label}
      </label>
      {aside}
    </div>
    {children}
    {/* An error message replaces the hint, because the two usually state the same rule. */}
    {hint !== undefined && error == null && (
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

/** Returns the attributes that link an input to the hint and the error message of its frame. */
export const describedBy = (id: string, { hint, error }: Pick<FieldText, 'hint' | 'error'>) => ({
  id,
  'aria-invalid': error == null ? undefined : (true as const),
  'aria-describedby':
    classNames(error != null && `${id}-error`, error == null && hint !== undefined && `${id}-hint`) || undefined,
});

export interface TextFieldProps extends Omit<ComponentProps<'input'>, 'id'>, FieldText {
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

/** Password field with a button to show and hide the password. */
export const PasswordField = ({ label, hint, error = null, aside, className, ...input }: TextFieldProps) => {
  const id = useId();
  const [shown, setShown] = useState(false);
  return (
    <FieldFrame {...{ id, label, hint, error, aside }}>
      <div className="relative">
        <input
          {...input}
          {...describedBy(id, { hint, error })}
          type={shown ? 'text' : 'password'}
          autoCapitalize="none"
          autoCorrect="off"
          spellCheck={false}
          className={classNames(inputClass, 'pr-11', className)}
        />
        <button
          type="button"
          aria-label="Show password"
          aria-pressed={shown}
          title={shown ? 'Hide password' : 'Show password'}
          onClick={() => setShown(!shown)}
          className="absolute inset-y-0 right-0 grid w-10 place-items-center rounded-md text-muted hover:text-ink"
        >
          <Icon name={shown ? 'eye-off' : 'eye'} />
        </button>
      </div>
    </FieldFrame>
  );
};

export interface CheckFieldProps {
  readonly label: string;
  readonly hint: ReactNode;
  readonly name: string;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (checked: boolean) => void;
}

/** Checkbox with a label and a hint. The whole area is clickable; screen readers use only the label as the name. */
export const CheckField = ({ label, hint, name, checked, disabled = false, onChange }: CheckFieldProps) => {
  const id = useId();
  return (
    <label className="flex gap-3">
      <input
        type="checkbox"
        value={name}
        {...{ name, checked, disabled }}
        aria-labelledby={`${id}-label`}
        aria-describedby={`${id}-hint`}
        onChange={({ target }) => onChange(target.checked)}
        className="mt-[3px] size-4 shrink-0 accent-accent"
      />
      <span className="min-w-0">
        <span id={`${id}-label`} className="block font-medium">
          {label}
        </span>
        <span id={`${id}-hint`} className="block text-muted text-sm">
          {hint}
        </span>
      </span>
    </label>
  );
};
