// The dialog of a change that the account's password confirms: its fields, what was refused, and the two ways out.
import { type ReactNode, useId } from 'react';
import { Button, type ButtonKind } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { PasswordField } from '../../ui/field.tsx';
import { FieldsForm } from '../../ui/fields-form.tsx';
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
      <FieldsForm {...{ id: form, error, pending, onSubmit }} className="space-y-4">
        <PasswordField
          label="Current password"
          name={CURRENT_PASSWORD}
          autoComplete="current-password"
          required
          error={atPassword}
        />
        {more}
      </FieldsForm>
      {error != null && atPassword === null && !atField && <Problem error={error} />}
    </Dialog>
  );
};
