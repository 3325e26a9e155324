// A form that hands its fields over as text, and after a refusal puts the keyboard where the problem is.
import { type ReactNode, type SubmitEvent, useEffect, useRef } from 'react';
import { Button } from '../../ui/button.tsx';
import { Problem, RequestLine } from '../../ui/problem.tsx';

export interface AuthFormProps {
  readonly onSubmit: (field: (name: string) => string) => void;
  readonly error: unknown;
  /** The error stands at one of the fields. */
  readonly atField: boolean;
  /** What to do about an error that does not. */
  readonly remedy?: ReactNode;
  readonly pending: boolean;
  /** On the button: a verb. */
  readonly action: string;
  readonly children: ReactNode;
}

export const AuthForm = ({ onSubmit, error, atField, remedy, pending, action, children }: AuthFormProps) => {
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
    <form ref={form} noValidate onSubmit={submit} className="space-y-5">
      {error != null && !atField && <Problem error={error}>{remedy}</Problem>}
      {children}
      <Button type="submit" kind="primary" pending={pending} className="h-10! w-full">
        {action}
      </Button>
      {atField && <RequestLine error={error} />}
    </form>
  );
};
