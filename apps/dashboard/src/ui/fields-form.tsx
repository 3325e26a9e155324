// Form that passes its field values as text to `onSubmit`. Ignores submits while a request is pending, and focuses the first invalid
// field after an error.
import { type ReactNode, type SubmitEvent, useEffect, useRef } from 'react';

export interface FieldsFormProps {
  /** ID of the form element, for a submit button outside the form. */
  readonly id?: string;
  readonly onSubmit: (field: (name: string) => string) => void;
  readonly error: unknown;
  readonly pending: boolean;
  readonly className: string;
  readonly children: ReactNode;
}

export const FieldsForm = ({ id, onSubmit, error, pending, className, children }: FieldsFormProps) => {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (error != null) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error]);
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (pending) return;
    const data = new FormData(event.currentTarget);
    onSubmit((name) => {
      const value = data.get(name);
      return typeof value === 'string' ? value : '';
    });
  };
  return (
    // Browser validation is off, so that users see only the API's error messages.
    <form ref={form} id={id} noValidate onSubmit={submit} className={className}>
      {children}
    </form>
  );
};
