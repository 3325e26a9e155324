// A form that hands its fields over as text, never twice at once, and after a refusal puts the keyboard where the problem is.
import { type ReactNode, type SubmitEvent, useEffect, useRef } from 'react';

export interface FieldsFormProps {
  /** For a button that stands outside of it. */
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
    // The API's own words say what is wrong, not the browser's.
    <form ref={form} id={id} noValidate onSubmit={submit} className={className}>
      {children}
    </form>
  );
};
