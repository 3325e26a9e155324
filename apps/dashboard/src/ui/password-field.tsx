// A password, hidden until its owner wants to see it.
import { useId, useState } from 'react';
import { classNames } from './class-names.ts';
import { describedBy, FieldFrame, inputClass, type TextFieldProps } from './field.tsx';
import { Icon } from './icon.tsx';

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
