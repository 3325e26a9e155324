// The dialog of a change that the account's password confirms: its fields, what was refused, and the two ways out.
import { type ReactNode, type SubmitEvent, useEffect, useId, useRef } from 'react';
import { Button, type ButtonKind } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { PasswordField } from '../../ui/field.tsx';
import { isFault, Problem } from '../../ui/problem.tsx';
import { fieldProblem, problemText } from '../../ui/problem-text.ts';

export interface AccountDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  /** On the button: a verb. */
  readonly action: string;
  readonly kind?: ButtonKind;
  readonly pending: boolean;
  readonly error: unknown;
  /** The error stands at one of the fields that the caller gave. */
  readonly atField?: boolean;
  readonly onSubmit: (field: (name: string) => string) => void;
  /** Above the password: what follows, in words. */
  readonly children?: ReactNode;
  /** Below it: more fields. */
  readonly more?: ReactNode;
}

/** The name that its own field has in the form; the API calls it by one of two. */
export const CURRENT_PASSWORD = 'current_password';

export const AccountDialog = ({
  open,
  onClose,
  title,
  action,
  kind = 'primary',
  pending,
  error,
  atField = false,
  onSubmit,
  children,
  more,
}: AccountDialogProps) => {
  const form = useId();
  const atPassword = isFault(error, 'PASSWORD_WRONG')
    ? problemText(error)
    : (fieldProblem(error, CURRENT_PASSWORD) ?? fieldProblem(error, 'password'));
  return (
    <Dialog
      open={open}
      onClose={onClose}
      // What is on its way is done, whether or not somebody still looks.
      dismissable={!pending}
      title={title}
      footer={
        <>
          <Button disabled={pending} onClick={onClose}>
            Cancel
          </Button>
          <Button kind={kind} type="submit" form={form} pending={pending}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      <DialogForm {...{ id: form, error, pending, onSubmit }}>
        <PasswordField
          label="Current password"
          name={CURRENT_PASSWORD}
          autoComplete="current-password"
          required
          error={atPassword}
        />
        {more}
      </DialogForm>
      {error != null && atPassword === null && !atField && <Problem error={error} />}
    </Dialog>
  );
};

interface DialogFormProps extends Pick<AccountDialogProps, 'error' | 'pending' | 'onSubmit'> {
  readonly id: string;
  readonly children: ReactNode;
}

/** After a refusal the keyboard is where the problem is. */
const DialogForm = ({ id, error, pending, onSubmit, children }: DialogFormProps) => {
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
    <form ref={form} id={id} noValidate onSubmit={submit} className="space-y-4">
      {children}
    </form>
  );
};
